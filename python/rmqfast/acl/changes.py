"""Changes that a request makes to an ACL file: sets or removes an account, sets a white list.

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
    """A change of one file."""

    def path(self, rules: Rules, files: AclFiles) -> Path | None:
        """The file; `None` if nothing is to change."""

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        """The new content of the file; `None` if nothing is to change."""


@dataclass(frozen=True, slots=True)
class SetAccount:
    """Sets an account in its file, or adds it to `plain_acl.yml`.

    Raises:
        ArgumentError: RocketMQ would not accept the account; with Java's text.
    """

    config: AccountConfig

    def __post_init__(self) -> None:
        self.config.check_keys()
        check_resources(self.config.topic_perms or ())
        check_resources(self.config.group_perms or ())

    def path(self, rules: Rules, files: AclFiles) -> Path | None:
        return rules.paths.get(str(self.config.access_key), files.default_path)

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        """The file with the account at the end; settings that the request leaves out stay."""
        others, old = _without(members, self.config.access_key)
        fields = self.config.to_members()
        for name in ("defaultTopicPerm", "defaultGroupPerm"):
            # mqadmin sends an empty text for what was not set
            if fields.get(name) == "":
                del fields[name]
        return members | {"accounts": [*others, {**old, **fields}]}


@dataclass(frozen=True, slots=True)
class RemoveAccount:
    """Removes an account."""

    access_key: str | None

    def path(self, rules: Rules, _files: AclFiles) -> Path | None:
        return rules.paths.get(self.access_key or "")

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        others, _ = _without(members, self.access_key)
        return members | {"accounts": others}


@dataclass(frozen=True, slots=True)
class SetWhiteAddresses:
    """Sets the white list of a file.

    Attributes:
        addresses: Its entries.
        file: Path of one of the ACL files; empty for `plain_acl.yml`.
    """

    addresses: tuple[str, ...] | None
    file: str | None

    def path(self, _rules: Rules, files: AclFiles) -> Path | None:
        """The file, if it is one of the ACL files: the path comes from a client."""
        if self.addresses is None:
            return None
        # normalized: `conf/acl/../../x` must not pass for one of our files
        path = Path(os.path.normpath(self.file)) if self.file else files.default_path
        return path if path in files.paths() else None

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        return members | {"globalWhiteRemoteAddresses": list(self.addresses or ())}


def next_version(members: Mapping[str, Any], now: int) -> dict[str, Any]:
    """The members with the next version."""
    version = (version_of(members) or DataVersion()).next(now)
    return {**members, "dataVersion": [{"counter": version.counter, "timestamp": version.timestamp}]}


def _without(members: Mapping[str, Any], access_key: str | None) -> tuple[list[Any], Mapping[str, Any]]:
    """The other accounts, and the one with the key."""
    others: list[Any] = []
    account: Mapping[str, Any] = {}
    for entry in entries_of(members, "accounts"):
        if AccountConfig.from_members(entry).access_key == access_key:
            account = account or entry
        else:
            others.append(entry)
    return others, account
