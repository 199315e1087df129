"""Changes that a request makes to an ACL file: sets or removes an account, sets a white list.

Comments of a file that is rewritten are lost, as in Java.

Source: `PlainPermissionManager.updateAccessConfig`, `deleteAccessConfig`, `updateGlobalWhiteAddrsConfig`.
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
        """The file; `None` where nothing is to be changed."""

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        """What the file says afterwards; `None` where nothing is to be changed."""


@dataclass(frozen=True, slots=True)
class SetAccount:
    """Sets what a request states of an account, in its file or, if it is new, in `plain_acl.yml`.

    Raises:
        ArgumentError: It states no account that RocketMQ takes; with Java's text.

    Source: `PlainPermissionManager.updateAccessConfig`, `createAclAccessConfigMap`.
    """

    config: AccountConfig

    def __post_init__(self) -> None:
        self.config.check_keys()
        check_resources(self.config.topic_perms or ())
        check_resources(self.config.group_perms or ())

    def path(self, rules: Rules, files: AclFiles) -> Path | None:
        """The file of the account."""
        return rules.paths.get(str(self.config.access_key), files.default_path)

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        """The account goes to the end; what the request does not state stays as it was."""
        others, old = _without(members, self.config.access_key)
        fields = self.config.to_members()
        for name in ("defaultTopicPerm", "defaultGroupPerm"):
            # mqadmin sends an empty text for what was not set
            if fields.get(name) == "":
                del fields[name]
        return members | {"accounts": [*others, {**old, **fields}]}


@dataclass(frozen=True, slots=True)
class RemoveAccount:
    """Removes an account.

    Source: `PlainPermissionManager.deleteAccessConfig`.
    """

    access_key: str | None

    def path(self, rules: Rules, _files: AclFiles) -> Path | None:
        """The file of the account, if there is one."""
        return rules.paths.get(self.access_key or "")

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        """The other accounts."""
        others, _ = _without(members, self.access_key)
        return members | {"accounts": others}


@dataclass(frozen=True, slots=True)
class SetWhiteAddresses:
    """Sets the white list of a file.

    Attributes:
        addresses: Its entries.
        file: The path of the file, which must be among those that are read; `plain_acl.yml` where it is empty.

    Source: `PlainPermissionManager.updateGlobalWhiteAddrsConfig`.
    """

    addresses: tuple[str, ...] | None
    file: str | None

    def path(self, _rules: Rules, files: AclFiles) -> Path | None:
        """The file, if it is one of ours: the path comes from a client."""
        if self.addresses is None:
            return None
        # normalized: `conf/acl/../../x` must not pass for one of our files
        path = Path(os.path.normpath(self.file)) if self.file else files.default_path
        return path if path in files.paths() else None

    def members(self, members: dict[str, Any]) -> dict[str, Any] | None:
        """The new list in the place of the old one."""
        return members | {"globalWhiteRemoteAddresses": list(self.addresses or ())}


def next_version(members: Mapping[str, Any], now: int) -> dict[str, Any]:
    """The members with the version after theirs.

    Source: `PlainPermissionManager.updateAclConfigFileVersion`.
    """
    version = (version_of(members) or DataVersion()).next(now)
    return {**members, "dataVersion": [{"counter": version.counter, "timestamp": version.timestamp}]}


def _without(members: Mapping[str, Any], access_key: str | None) -> tuple[list[Any], Mapping[str, Any]]:
    """The other accounts, and the one with that key."""
    others: list[Any] = []
    account: Mapping[str, Any] = {}
    for entry in entries_of(members, "accounts"):
        if AccountConfig.from_members(entry).access_key == access_key:
            account = account or entry
        else:
            others.append(entry)
    return others, account
