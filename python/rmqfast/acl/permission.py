"""Parses and compares the permissions that an account has for a topic or a group.

Source: `Permission`.
"""

from __future__ import annotations

from collections.abc import Iterable

from rmqfast.errors import ArgumentError

DENY, ANY, PUB, SUB = 1, 2, 4, 8
#: Added to a needed permission: an entry for the resource must grant it, the default does not count.
EXPLICIT = 16
#: A group is listed among the resources by its retry topic.
RETRY_PREFIX = "%RETRY%"

_PERMISSIONS = {"PUB": PUB, "SUB": SUB, "PUB|SUB": PUB | SUB, "SUB|PUB": PUB | SUB, "DENY": DENY}
#: Characters that Java's `trim` removes: the space and all characters below it.
_BLANK = "".join(map(chr, range(0x21)))


def is_permitted(needed: int, owned: int) -> bool:
    """Whether the owned permissions include one of the needed permissions."""
    # DENY wins over other permissions.
    if owned & DENY:
        return False
    return bool((PUB | SUB) & owned) if needed & ANY else bool(needed & owned)


def parse_permission(text: str | None) -> int:
    """Parses a permission of `plain_acl.yml`. A missing or unknown permission is DENY."""
    # Lower-case "pub" is unknown, too, since Java's switch compares exactly.
    return DENY if text is None else _PERMISSIONS.get(text.strip(_BLANK), DENY)


def retry_topic(group: str) -> str:
    """Returns the retry topic of a group, which stands for the group in permissions."""
    return RETRY_PREFIX + group


def parse_resources(resources: Iterable[str], *, of_groups: bool) -> dict[str, int]:
    """Parses `topicPerms` or `groupPerms` to permissions by topic or group. Raises `ArgumentError` with Java's text."""
    permissions = {}
    for resource in resources:
        items = _items(resource)
        if len(items) != 2:
            kind = "group" if of_groups else "topic"
            raise ArgumentError(f"Parse resource permission failed for {kind}:{resource}")
        name = items[0].strip(_BLANK)
        permissions[retry_topic(name) if of_groups else name] = parse_permission(items[1])
    return permissions


def check_resources(resources: Iterable[str]) -> None:
    """Refuses entries that a file may contain but a request must not set. Raises `ArgumentError` with Java's text."""
    for resource in resources:
        items = _items(resource)
        if len(items) != 2:
            raise ArgumentError(
                f"Parse Resource format error for {resource}.\n"
                "The expected resource format is 'Res=Perm'. For example: topicA=SUB"
            )
        if items[1].strip(_BLANK) not in _PERMISSIONS:
            raise ArgumentError(
                f"Parse resource permission error for {resource}.\n"
                "The expected permissions are 'SUB' or 'PUB' or 'SUB|PUB' or 'PUB|SUB'."
            )


def _items(resource: str) -> list[str]:
    return [item for item in resource.split("=") if item]
