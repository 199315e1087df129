"""Accounts: parses them from a file or a request, and checks which rights they give.

Source: `PlainAccessConfig`, `PlainAccessResource`, `PlainPermissionManager.checkPlainAccessConfig`,
`PlainPermissionManager.buildPlainAccessResource`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from rmqfast.acl.address import AddressPattern, parse_pattern
from rmqfast.acl.permission import EXPLICIT, RETRY_PREFIX, is_permitted, parse_permission, parse_resources
from rmqfast.errors import ArgumentError
from rmqfast.remoting.fastjson import java_text


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountConfig:
    """The settings of an account, as a file or a request contains them.

    Attributes:
        access_key: Name of the account, longer than six characters.
        secret_key: Key of signatures, longer than six characters.
        white_remote_address: Clients of these addresses need no signature.
        default_topic_perm: Permission for topics without an entry.
        default_group_perm: Permission for groups without an entry.
        topic_perms: Entries like `topicA=PUB|SUB`.
        group_perms: Entries like `groupA=SUB`.
    """

    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: tuple[str, ...] | None = None
    group_perms: tuple[str, ...] | None = None

    @classmethod
    def from_members(cls, members: object) -> Self:
        """Parses an entry of `accounts`. Ignores unknown fields. Raises `ArgumentError` for a field of wrong type."""
        if not isinstance(members, dict):
            raise ArgumentError(f"accounts: expected an entry with accessKey and secretKey, got {_kind(members)}")
        return cls(
            access_key=text_of(members, "accessKey"),
            secret_key=text_of(members, "secretKey"),
            white_remote_address=text_of(members, "whiteRemoteAddress"),
            admin=_flag(members, "admin"),
            default_topic_perm=text_of(members, "defaultTopicPerm"),
            default_group_perm=text_of(members, "defaultGroupPerm"),
            topic_perms=texts_of(members, "topicPerms"),
            group_perms=texts_of(members, "groupPerms"),
        )

    def to_members(self) -> dict[str, Any]:
        """Returns the fields for a file or an answer. Fields without a value are left out."""
        members: dict[str, Any] = {
            "accessKey": self.access_key,
            "secretKey": self.secret_key,
            "whiteRemoteAddress": self.white_remote_address,
            "admin": self.admin,
            "defaultTopicPerm": self.default_topic_perm,
            "defaultGroupPerm": self.default_group_perm,
            "topicPerms": None if self.topic_perms is None else list(self.topic_perms),
            "groupPerms": None if self.group_perms is None else list(self.group_perms),
        }
        return {name: value for name, value in members.items() if value is not None}

    def check_keys(self) -> tuple[str, str]:
        """Returns access key and secret key. Raises `ArgumentError` with Java's text if one is missing or too short."""
        access_key, secret_key = self.access_key, self.secret_key
        if access_key is None or secret_key is None or min(len(access_key), len(secret_key)) <= 6:
            keys = f"The accessKey={java_text(access_key)} and secretKey={java_text(secret_key)}"
            raise ArgumentError(f"{keys} cannot be null and length should longer than 6")
        return access_key, secret_key


@dataclass(frozen=True, slots=True)
class Account:
    """An account in the form in which requests are checked against it.

    Attributes:
        secret_key: Key of signatures, in UTF-8.
        white: Clients of these addresses need no signature.
        topic_permission: Permission for topics without an entry.
        group_permission: Permission for groups without an entry.
        permissions: Permissions by topic name, or by retry topic for a group.
    """

    access_key: str
    secret_key: bytes = field(repr=False)
    white: AddressPattern
    is_admin: bool
    topic_permission: int
    group_permission: int
    permissions: Mapping[str, int]

    @classmethod
    def of(cls, config: AccountConfig) -> Self:
        """Returns the account of a configuration. Raises `ArgumentError` with Java's text if RocketMQ refuses it."""
        access_key, secret_key = config.check_keys()
        groups = parse_resources(config.group_perms or (), of_groups=True)
        return cls(
            access_key=access_key,
            secret_key=secret_key.encode("utf-8", "replace"),
            white=parse_pattern(config.white_remote_address),
            is_admin=config.admin,
            # A missing default means DENY, as in Java.
            topic_permission=parse_permission(config.default_topic_perm),
            group_permission=parse_permission(config.default_group_perm),
            permissions=groups | parse_resources(config.topic_perms or (), of_groups=False),
        )

    def may(self, resource: str, needed: int) -> bool:
        """Whether the account has the needed permission for a resource."""
        owned = self.permissions.get(resource)
        if owned is None and needed & EXPLICIT:
            return False
        if owned is None:
            owned = self.group_permission if resource.startswith(RETRY_PREFIX) else self.topic_permission
        return is_permitted(needed, owned)


def text_of(members: Mapping[str, Any], name: str) -> str | None:
    """Returns a field as a string. Accepts numbers and booleans, because YAML reads 12345678 as a number."""
    return _text(members.get(name), name)


def texts_of(members: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    """Returns a field as a list of strings, or None if it is missing. Raises `ArgumentError` for any other value."""
    values = members.get(name)
    if values is None:
        return None
    if not isinstance(values, list) or None in values:
        raise ArgumentError(f"{name}: expected a list of texts, got {_kind(values)}")
    return tuple(str(_text(value, name)) for value in values)


def _text(value: object, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    # YAML reads unquoted words like true, and digits, as other types.
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    raise ArgumentError(f"{name}: expected a text, in quotes where it looks like something else, got {_kind(value)}")


def _flag(members: Mapping[str, Any], name: str) -> bool:
    value = members.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    raise ArgumentError(f"{name}: expected true or false, got {_kind(value)}")


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"
