"""Parses the address patterns of white lists, and matches client addresses with them.

Source: `RemoteAddressStrategyFactory`, `AclUtils`.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from rmqfast.errors import ArgumentError
from rmqfast.logs import logger_of

_log = logger_of(__name__)


class Address(NamedTuple):
    """An IP address as numbers: four for IPv4, eight for IPv6."""

    groups: tuple[int, ...]
    zone: str = ""


class AddressPattern(Protocol):
    """An address pattern of a white list."""

    def matches(self, address: Address | None) -> bool:
        """Whether the pattern matches an address. `None` stands for an address that could not be parsed."""


@dataclass(frozen=True, slots=True)
class Everybody:
    def matches(self, address: Address | None) -> bool:  # noqa: ARG002 - whatever it is
        return True


@dataclass(frozen=True, slots=True)
class OneOf:
    """A pattern that lists addresses. A blank pattern has no addresses and matches nothing."""

    addresses: frozenset[Address] = frozenset()

    def matches(self, address: Address | None) -> bool:
        return address in self.addresses


@dataclass(frozen=True, slots=True)
class Range:
    """A pattern with given first numbers and a range for the next number. All later numbers match."""

    head: tuple[int, ...]
    first: int
    last: int
    size: int

    def matches(self, address: Address | None) -> bool:
        if address is None or len(address.groups) != self.size:
            return False
        length = len(self.head)
        return address.groups[:length] == self.head and self.first <= address.groups[length] <= self.last


@lru_cache(maxsize=4096)
def address_of(remote_address: str) -> Address | None:
    """Parses a client's `ip:port`. Returns `None` if it is not an IP address."""
    host, colon, _ = remote_address.rpartition(":")
    return _address((host if colon else remote_address).strip("[]"))


def parse_pattern(text: str | None) -> AddressPattern:
    """Parses a pattern of a white list. Raises `ArgumentError`, with the text of RocketMQ if RocketMQ refuses it too.

    An entry is `*`, an address, `10.0.0.*`, `10.0.*.*`, `10.0.0.1-9`, `10.0.0.{1,2}`, addresses joined by commas, or
    the same with IPv6 (`fe80:0:0:0:0:0:1-20:*`). A blank entry matches no address.
    """
    if text is None or not text.strip():
        return OneOf()
    if text in {"*", "*.*.*.*", "*:*:*:*:*:*:*:*"}:
        return Everybody()
    if text.endswith("}"):
        return _set(text)
    if "," in text:
        return OneOf(frozenset(map(_parse_listed, _parts(text, ","))))
    if "*" in text or "-" in text:
        return _ipv6_range(text) if ":" in text else _ipv4_range(text)
    return OneOf(frozenset([_parse_listed(text)]))


def _set(text: str) -> OneOf:
    parts = _parts(text, ":" if ":" in text else ".")
    if ":" not in text and len(parts) < 4:
        raise ArgumentError("MultipleRemoteAddressStrategy has got a/some wrong format IP(s) ")
    if not parts[-1].startswith("{"):
        raise ArgumentError("MultipleRemoteAddressStrategy netaddress examine scope Exception netaddress")
    head = text[: text.index("{")]
    return OneOf(frozenset(_parse_listed(head + item) for item in _parts(parts[-1][1:-1], ",")))


def _ipv4_range(text: str) -> AddressPattern:
    parts = _parts(text, ".")
    for index in (1, 2, 3):
        bounds = _bounds(text, parts[index], 255, 10) if index < len(parts) else None
        if bounds is None:
            continue
        if len(parts) != 4 or not all(_number(text, part.strip(), 10) <= 255 for part in parts[: index - 1]):
            raise _wrong_scope(text)
        _warn_of_ignored(text, parts[index + 1 :])
        head = [part.strip() for part in parts[:index]]
        # Java compares strings, so "010" matches no address.
        if not all(part.isascii() and part.isdigit() and str(int(part)) == part for part in head):
            return OneOf()
        return Range(tuple(map(int, head)), *bounds, 4)
    raise _wrong_scope(text)


def _ipv6_range(text: str) -> AddressPattern:
    _check_places(text)
    parts = _parts(text, ":")
    for index, part in enumerate(parts[1:], start=1):
        bounds = _bounds(text, part, 0xFFFF, 16)
        if bounds is not None:
            cut = 2 if "*" in text and "-" in text else 1
            head = _expand(text, text.rsplit(":", cut)[0], 8 - cut)
            if len(head) > 7:
                raise _wrong_scope(text)
            _warn_of_ignored(text, parts[index + 1 :])
            return Range(head, *bounds, 8)
    raise _wrong_scope(text)


def _check_places(text: str) -> None:
    """Refuses a star that is not at the end, and a range that is neither at the end nor directly before a star."""
    star, minus = text.find("*"), text.find("-")
    if star not in {-1, len(text) - 1}:
        raise _wrong_scope(text)
    if minus >= 0 and minus <= len(text.rsplit(":", 1 if star < 0 else 2)[0]):
        raise _wrong_scope(text)


def _expand(text: str, head: str, groups: int) -> tuple[int, ...]:
    """Returns the first numbers of a pattern. `::` becomes zeros up to `groups` numbers; as in Java, "" means 0."""
    zeroes = groups - head.count(":")
    if zeroes > 0:
        head = head.replace("::", ":" * (zeroes + 1))
    numbers = tuple(_number(text, group, 16) if group else 0 for group in head.split(":"))
    if max(numbers) > 0xFFFF:
        raise _wrong_scope(text)
    return numbers


def _bounds(text: str, part: str, highest: int, base: int) -> tuple[int, int] | None:
    """Returns the first and the last number of a range. `None` if it is no range or, as in Java, ends at 0."""
    value = part.strip()
    if value == "*":
        return 0, highest
    if "-" not in value:
        return None
    if value.startswith("-"):
        raise ArgumentError(f"RangeRemoteAddressStrategy netaddress examine scope Exception value {value} ")
    numbers = [_number(text, number, base) for number in _parts(value, "-")]
    if len(numbers) < 2:
        raise _wrong_scope(text)
    first, last = numbers[:2]
    if not first <= last <= highest:
        raise ArgumentError(
            f"RangeRemoteAddressStrategy netaddress examine scope Exception start is {first} , end is {last}"
        )
    return (first, last) if last else None


def _parse_listed(text: str) -> Address:
    address = _address(text)
    if address is not None:
        return address
    network, slash, bits = text.partition("/")
    if slash and ":" in network and _address(network) and bits.isascii() and bits.isdigit() and int(bits[:4]) <= 128:
        _log.warning("white list: %s takes in nobody: RocketMQ knows no prefix lengths", text)
        # An address that no client can have.
        return Address((), text)
    raise ArgumentError(f"Netaddress examine Exception netaddress is {text}")


def _address(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        # On an IPv6 listener, an IPv4 client appears with a mapped address.
        if address.ipv4_mapped is None:
            packed = address.packed
            groups = tuple(int.from_bytes(packed[at : at + 2]) for at in range(0, 16, 2))
            return Address(groups, address.scope_id or "")
        address = address.ipv4_mapped
    return Address(tuple(address.packed))


def _parts(text: str, separator: str) -> list[str]:
    """Splits a string and drops empty parts, like `StringUtils.split` in Java."""
    return [part for part in text.split(separator) if part]


def _number(text: str, digits: str, base: int) -> int:
    if not (digits.isascii() and digits.isalnum() and len(digits) < 9):
        raise _wrong_scope(text)
    try:
        return int(digits, base)
    except ValueError:
        raise _wrong_scope(text) from None


def _warn_of_ignored(text: str, parts: list[str]) -> None:
    if any(part.strip() != "*" for part in parts):
        _log.warning("white list: %s: what follows its range does not count, as in RocketMQ", text)


def _wrong_scope(text: str) -> ArgumentError:
    return ArgumentError(f"Netaddress examine scope Exception netaddress is {text}")
