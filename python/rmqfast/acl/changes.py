"""Changes of an ACL file that a request can make: setting or removing an account, and setting a white list.

Comments in the file are lost, as in Java.

Source: `PlainPermissionManager.updateAccessConfig`, `PlainPermissionManager.deleteAccessConfig`,
`PlainPermissionManager.updateGlobalWhiteAddrsConfig`, `PlainPermissionManager.createAclAccessConfigMap`,
`PlainPermissionManager.updateAclConfigFileVersion`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rmqfast.acl.account import AccountConfig
from rmqfast.acl.acl_files import AclFiles
from rmqfast.acl.permission import check_resources
from rmqfast.acl.rules import Rules, entries_of, version_of
from rmqfast.store.config import DataVersion


class Change(Protocol):
    """A change of one ACL file."""

    def path(self, rules: Rules, files: AclFiles) -> Path | None:
        """Returns the file to change; `None` if there is nothing to change."""

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the new content of the file; `None` if there is nothing to change."""


@dataclass(frozen=True, slots=True)
class SetAccount:
    """Sets an account in its file, or adds it to `plain_acl.yml`. Raises `ArgumentError` if RocketMQ refuses it."""

    config: AccountConfig

    def __post_init__(self) -> None:
        self.config.check_keys()
        check_resources(self.config.topic_perms or ())
        check_resources(self.config.group_perms or ())

    def path(self, rules: Rules, files: AclFiles) -> Path | None:
        return rules.paths.get(str(self.config.access_key), files.default_path)

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the file with the account as its last one. Settings that the request lacks stay unchanged."""
        others, old = _without(members, self.config.access_key)
        fields = self.config.to_members()
        for name in ("defaultTopicPerm", "defaultGroupPerm"):
            # mqadmin sends an empty string for a setting without a value.
            if fields.get(name) == "":
                del fields[name]
        return members | {"accounts": [*others, {**old, **fields}]}


@dataclass(frozen=True, slots=True)
class RemoveAccount:
    access_key: str | None

    def path(self, rules: Rules, _files: AclFiles) -> Path | None:
        return rules.paths.get(self.access_key or "")

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        others, _ = _without(members, self.access_key)
        return members | {"accounts": others}


@dataclass(frozen=True, slots=True)
class SetWhiteAddresses:
    """Sets the white list of a file; an empty `file` means `plain_acl.yml`."""

    addresses: tuple[str, ...] | None
    file: str | None

    def path(self, _rules: Rules, files: AclFiles) -> Path | None:
        """Returns the path that a client sent, or `None` if it is not the path of an ACL file."""
        if self.addresses is None:
            return None
        # Normalized, so that `conf/acl/../../x` does not count as an ACL file.
        path = Path(os.path.normpath(self.file)) if self.file else files.default_path
        return path if path in files.paths() else None

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        return members | {"globalWhiteRemoteAddresses": list(self.addresses or ())}


def next_version(members: Mapping[str, Any], now: int) -> dict[str, Any]:
    version = (version_of(members) or DataVersion()).next(now)
    return {**members, "dataVersion": [{"counter": version.counter, "timestamp": version.timestamp}]}


def _without(members: Mapping[str, Any], access_key: str | None) -> tuple[list[Any], Mapping[str, Any]]:
    """Returns the accounts without this access key, and the first account with it."""
    others: list[Any] = []
    account: Mapping[str, Any] = {}
    for entry in entries_of(members, "accounts"):
        # Compared after parsing, since YAML may read a key as a number.
        if AccountConfig.from_members(entry).access_key == access_key:
            account = account or entry
        else:
            others.append(entry)
    return others, account
