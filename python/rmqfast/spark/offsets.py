"""Where a read of queues starts and ends, as options say it: earliest, latest, or JSON by topic, broker and queue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from rmqfast.errors import ArgumentError, CorruptError

__all__ = ["EARLIEST", "LATEST", "Offsets", "by_queue_id", "check_not_expired", "offset_bounds", "parse_offsets"]

EARLIEST = -2
LATEST = -1

Offsets = Mapping[int, int] | Literal["earliest", "latest"]
"""A queue offset by queue id, -1 for latest and -2 for earliest; or one word for all queues."""

Queues = Mapping[int, tuple[int, int]]


def parse_offsets(name: str, text: str, topic: str | None, broker_name: str | None) -> Offsets:
    """Reads an option's text.

    Args:
        name: The option, for errors.
        text: `earliest`, `latest`, or `{"topic": {"broker": {"0": 23}}}`; the broker may be `*`.
        topic: The topic that is read.
        broker_name: The name that the store's broker was given.

    Raises:
        ArgumentError: Another text, another topic, another broker, an offset below -2.

    Example:
        >>> parse_offsets("startingOffsets", '{"orders": {"*": {"0": 23, "1": -1}}}', "orders", None)
        {0: 23, 1: -1}

    Source: `RocketMQOptions` of rocketmq-spark.
    """
    word = text.strip().lower()
    if word == "earliest":
        return "earliest"
    if word == "latest":
        return "latest"
    if topic is None:
        raise ArgumentError(f"{name}: offsets by queue need the option topic")
    by_broker = _only(name, "topic", _object(name, text), {topic})
    by_queue = _only(name, "broker", by_broker, {"*", broker_name or "*"})
    return by_queue_id(name, by_queue)


def by_queue_id(name: str, queues: Mapping[str, Any]) -> dict[int, int]:
    """The offsets that a JSON object has by queue.

    Args:
        name: The option, for errors.
        queues: Offsets by queue id, as a text.

    Raises:
        ArgumentError: A key that is no queue id, an offset below -2.

    Example:
        >>> by_queue_id("startingOffsets", {"0": 23, "1": -1})
        {0: 23, 1: -1}

    Source: as `parse_offsets`.
    """
    return {_queue_id(name, key): _offset(name, key, value) for key, value in queues.items()}


def offset_bounds(name: str, offsets: Offsets, queues: Queues, edge: Literal["start", "end"]) -> dict[int, int]:
    """The bounds of a scan that `offsets` mean in a store as it is now; a queue without one is not bounded.

    Args:
        name: The option, for errors.
        offsets: What `parse_offsets` gave.
        queues: Each queue's first offset, and the one behind its last.
        edge: Which end of the read this is.

    Raises:
        ArgumentError: A queue that the topic does not have.

    Example:
        >>> offset_bounds("startingOffsets", {0: 5, 1: -1, 2: -2}, {0: (0, 9), 1: (0, 7), 2: (3, 4)}, "start")
        {0: 5, 1: 7}

    Source: `DefaultMessageStore.getMinOffsetInQueue`, `getMaxOffsetInQueue`.
    """
    if isinstance(offsets, str):
        offsets = dict.fromkeys(queues, EARLIEST if offsets == "earliest" else LATEST)
    unknown = [queue_id for queue_id in offsets if queue_id not in queues]
    if unknown:
        known = ", ".join(map(str, sorted(queues))) or "none"
        raise ArgumentError(f"{name}: no queue {unknown[0]}; the topic's queues are {known}")
    open_edge = EARLIEST if edge == "start" else LATEST
    return {q: _resolved(offset, *queues[q]) for q, offset in offsets.items() if offset != open_edge}


def check_not_expired(name: str, bounds: Mapping[int, int], queues: Queues) -> None:
    """Refuses to start behind messages that retention has deleted, as if they had never been.

    Args:
        name: The option, for errors.
        bounds: First offset by queue.
        queues: As in `offset_bounds`.

    Raises:
        CorruptError: A queue begins behind its bound.

    Source: `PullStatus.OFFSET_ILLEGAL`.
    """
    for queue_id, offset in bounds.items():
        first, _ = queues.get(queue_id, (0, 0))
        if offset < first:
            raise CorruptError(
                f"{name}: queue {queue_id}: offset {offset} has expired, the queue begins at {first}; "
                'on_damage="warn" (failOnDataLoss=false) starts there'
            )


def _resolved(offset: int, first: int, behind_last: int) -> int:
    return {EARLIEST: first, LATEST: behind_last}.get(offset, offset)


def _object(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        form = '{"topic": {"broker": {"0": 23}}}'
        raise ArgumentError(f"{name}: expected earliest, latest or JSON as {form}, got {text!r}") from None


def _only(name: str, what: str, value: Any, allowed: set[str]) -> dict[str, Any]:
    """The one member of a JSON object; it must be one of `allowed`."""
    wanted = " or ".join(map(repr, sorted(allowed)))
    if not isinstance(value, dict) or len(value) != 1 or not allowed.issuperset(value):
        got = sorted(value) if isinstance(value, dict) else value
        raise ArgumentError(f"{name}: expected one {what}, {wanted}, got {got!r}")
    (member,) = value.values()
    if not isinstance(member, dict):
        raise ArgumentError(f"{name}: expected an object below the {what}, got {member!r}")
    return member


def _queue_id(name: str, key: str) -> int:
    if not key.isdecimal():
        raise ArgumentError(f'{name}: expected a queue id as "0", got {key!r}')
    return int(key)


def _offset(name: str, key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not EARLIEST <= value < 1 << 63:
        raise ArgumentError(f"{name}: queue {key}: expected an offset, -1 (latest) or -2 (earliest), got {value!r}")
    return value
