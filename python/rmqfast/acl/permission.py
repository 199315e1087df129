"""Parses and compares the permissions of an account for a topic or a group.

Source: `Permission`.
"""

from __future__ import annotations

from collections.abc import Iterable

from rmqfast.errors import ArgumentError

DENY, ANY, PUB, SUB = 1, 2, 4, 8
#: Beside a permission that is needed: an entry for the resource must give it, a default is not enough.
EXPLICIT = 16
#: A group stands among the resources as its retry topic.
RETRY_PREFIX = "%RETRY%"

_PERMISSIONS = {"PUB": PUB, "SUB": SUB, "PUB|SUB": PUB | SUB, "SUB|PUB": PUB | SUB, "DENY": DENY}
#: What Java's `trim` removes: the space and all below it.
_BLANK = "".join(map(chr, range(0x21)))


def is_permitted(needed: int, owned: int) -> bool:
    """Whether permissions `owned` include one of `needed`."""
    # DENY beside another permission wins
    if owned & DENY:
        return False
    return bool((PUB | SUB) & owned) if needed & ANY else bool(needed & owned)


def parse_permission(text: str | None) -> int:
    """The permission of a text in `plain_acl.yml`; DENY for a missing or unknown text."""
    # "pub" in small letters is unknown, too: Java's switch compares exactly
    return DENY if text is None else _PERMISSIONS.get(text.strip(_BLANK), DENY)


def retry_topic(group: str) -> str:
    """The resource that stands for a group."""
    return RETRY_PREFIX + group


def parse_resources(resources: Iterable[str], *, of_groups: bool) -> dict[str, int]:
    """The permissions in `topicPerms` or `groupPerms`, by resource.

    Raises:
        ArgumentError: An entry is malformed; with Java's text.
    """
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
    """Refuses entries that a request may not set, though a file may have them.

    Raises:
        ArgumentError: An entry is malformed or has an unknown permission; with Java's text.
    """
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
