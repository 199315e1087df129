"""Merges accounts and white lists of all ACL files into rules, and changes the files for requests.

Comments in a changed file are lost, as in Java.

Source: RocketMQ's `PlainPermissionManager.load`, `PlainPermissionManager.updateAccessConfig`,
`PlainPermissionManager.deleteAccessConfig`, `PlainPermissionManager.updateGlobalWhiteAddrsConfig`,
`PlainPermissionManager.createAclAccessConfigMap`, `PlainPermissionManager.updateAclConfigFileVersion`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rmqfast.acl import yaml_text
from rmqfast.acl.account import Account, AccountConfig, texts_of
from rmqfast.acl.acl_files import AclFiles
from rmqfast.acl.address import AddressPattern, parse_pattern
from rmqfast.acl.permission import check_resources
from rmqfast.errors import ArgumentError
from rmqfast.logs import logger_of
from rmqfast.store.config import DataVersion

_log = logger_of(__name__)
_WHITE = "globalWhiteRemoteAddresses"


@dataclass(frozen=True, slots=True)
class Rules:
    """All accounts and white lists. An object never changes; after a change of the files it is replaced.

    Attributes:
        white: Addresses whose clients may do everything without a signature.
        accounts: Accounts by access key.
        paths: The file of each account.
        versions: The version of each file.
        white_addresses: Entries of `white` as written in the files.
        configs: The accounts as written in the files.
    """

    white: tuple[AddressPattern, ...]
    accounts: Mapping[str, Account]
    paths: Mapping[str, Path]
    versions: Mapping[Path, DataVersion]
    white_addresses: tuple[str, ...]
    configs: tuple[AccountConfig, ...]


def rules_of(contents: Mapping[Path, bytes], now: int) -> Rules:
    """Returns the rules of all ACL files. Raises `ArgumentError` with the name of a file that RocketMQ would refuse."""
    builder = _Builder(now)
    for path, data in contents.items():
        try:
            builder.add(path, yaml_text.load(data))
        except ArgumentError as error:
            raise ArgumentError(f"{path}: {error}") from error
    return builder.rules()


class _Builder:
    def __init__(self, now: int) -> None:
        self._now = now
        self._white: list[str] = []
        self._patterns: list[AddressPattern] = []
        self._accounts: dict[str, Account] = {}
        self._paths: dict[str, Path] = {}
        self._versions: dict[Path, DataVersion] = {}
        self._configs: list[AccountConfig] = []

    def add(self, path: Path, members: Mapping[str, Any]) -> None:
        if not members:
            _log.warning("no data in file %s", path)
            return
        # YAML parses an empty entry as null, which Java skips.
        white = texts_of({_WHITE: [entry for entry in entries_of(members, _WHITE) if entry is not None]}, _WHITE) or ()
        self._patterns += map(parse_pattern, white)
        self._white += white
        for entry in entries_of(members, "accounts"):
            self._add_account(path, AccountConfig.from_members(entry))
        self._versions[path] = version_of(members) or DataVersion(timestamp=self._now)

    def _add_account(self, path: Path, config: AccountConfig) -> None:
        account = Account.of(config)
        if account.access_key in self._accounts:
            _log.warning("%s: the access key %s was there before: its first account counts", path, account.access_key)
            return
        self._accounts[account.access_key] = account
        self._paths[account.access_key] = path
        self._configs.append(config)

    def rules(self) -> Rules:
        return Rules(
            tuple(self._patterns), self._accounts, self._paths, self._versions, tuple(self._white), tuple(self._configs)
        )


def entries_of(members: Mapping[str, Any], name: str) -> list[Any]:
    """Returns a list in a file; empty if it is missing. Raises `ArgumentError` if the value is not a list."""
    entries = members.get(name)
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise ArgumentError(f"{name}: expected a list, got a value of type {type(entries).__name__}")
    return entries


def version_of(members: Mapping[str, Any]) -> DataVersion | None:
    """Returns the version of a file, or `None` if it has none. Raises `ArgumentError` if the version is malformed."""
    entries = entries_of(members, "dataVersion")
    if not entries:
        return None
    first = entries[0]
    if not isinstance(first, dict):
        raise ArgumentError("dataVersion: expected a list of counter and timestamp")
    return DataVersion(timestamp=_number(first, "timestamp"), counter=_number(first, "counter"))


def _number(members: Mapping[str, Any], name: str) -> int:
    number = members.get(name, 0)
    if not isinstance(number, int) or not -(1 << 63) <= number < 1 << 63:
        raise ArgumentError(f"dataVersion: {name}: expected a whole number of 64 bits")
    return number


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
        """Returns the file with the account as its last account. Settings that the request lacks stay unchanged."""
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
    """Returns the accounts that do not have the access key, and the first account that has it."""
    others: list[Any] = []
    account: Mapping[str, Any] = {}
    for entry in entries_of(members, "accounts"):
        # Compared after parsing, since YAML may read a key as a number.
        if AccountConfig.from_members(entry).access_key == access_key:
            account = account or entry
        else:
            others.append(entry)
    return others, account
