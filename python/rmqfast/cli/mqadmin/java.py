"""Texts as Java prints them: padded columns, numbers, times, indented JSON, and the order of hash maps.

Source: `java.util.Formatter`, `UtilAll`, fastjson's `PrettyFormat`, `java.util.HashMap`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal

from rmqfast.cells import one_line
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue
from rmqfast.remoting.hash_map import java_hash, sort_by_hash

#: Perl-like switches of a topic.
_RIGHTS = ((4, "R"), (2, "W"), (1, "X"))


def decimal_text(number: float, digits: int) -> str:
    """Formats a number as `%.<digits>f`: Java rounds halves up.

    Example:
        >>> decimal_text(0.125, 2), decimal_text(2.5, 0)
        ('0.13', '3')
    """
    return str(Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def front(text: str, size: int) -> str:
    """Returns the first characters of a text, at most `size`, without control characters."""
    return one_line(text)[:size]


def word(flag: bool) -> str:  # noqa: FBT001  # a value to print
    """Returns a flag as Java prints it."""
    return "true" if flag else "false"


def perm_text(perm: int) -> str:
    """Returns permissions as in `RW-`."""
    return "".join(letter if perm & bit else "-" for bit, letter in _RIGHTS)


def seconds_text(milliseconds: int) -> str:
    """Formats milliseconds since 1970 in local time, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(milliseconds // 1000))


def milliseconds_text(milliseconds: int) -> str:
    """Formats milliseconds since 1970 in local time, with a comma before the milliseconds."""
    return f"{seconds_text(milliseconds)},{milliseconds % 1000:03d}"


def milliseconds_of(text: str) -> int:
    """Parses a number of milliseconds, or a local time as `2026-11-30#09:15:00:000`. `now` is -1."""
    if text == "now":
        return -1
    if text.removeprefix("-").isdecimal():
        return int(text)
    whole, _, fraction = text.rpartition(":")
    try:
        seconds = time.mktime(time.strptime(whole, "%Y-%m-%d#%H:%M:%S"))
        return int(seconds) * 1000 + int(fraction)
    except ValueError:
        raise ArgumentError(
            f"-s: expected now, milliseconds since 1970 or yyyy-MM-dd#HH:mm:ss:SSS, got {text!r}"
        ) from None


def queues_in_order(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Returns queues in the order of a `HashMap` of Java's `MessageQueue`."""

    def hash_of(queue: MessageQueue) -> int:
        value = 31 + java_hash(queue.broker_name)
        value = value * 31 + queue.queue_id
        return (value * 31 + java_hash(queue.topic)) & 0xFFFFFFFF

    return sort_by_hash(list(queues), hash_of)


def pretty(value: object, depth: int = 0) -> str:
    """Formats JSON's values with tabs, as fastjson does. Keys that are numbers stay on the line of their map."""
    here, below = "\n" + "\t" * depth, "\n" + "\t" * (depth + 1)
    if isinstance(value, Mapping) and value:
        members = [
            f"{key}:{pretty(each, depth + 1)}"
            if isinstance(key, int)
            else f"{below}{_quote(key)}:{pretty(each, depth + 1)}"
            for key, each in value.items()
        ]
        return "{" + ",".join(members) + here + "}"
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return "[" + ",".join(below + pretty(each, depth + 1) for each in value) + here + "]"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quote(key: object) -> str:
    return json.dumps(str(key), ensure_ascii=False)
