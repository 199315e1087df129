"""Where a read of a topic starts and ends, as options say it, and what that means in the queues as they are."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from typing import Any, Literal

from rmqfast.errors import ArgumentError, DataLossError
from rmqfast.message import MessageQueue
from rmqfast.spark.offsets import EARLIEST, LATEST, by_queue_id

__all__ = ["Bounds", "TopicOffsets", "offsets_json", "offsets_of_json", "parse_offsets", "resolve_offsets"]

_log = logging.getLogger("rmqfast.spark")

Bounds = tuple[int, int]
"""A queue's first offset, and the one behind its last."""

TopicOffsets = Mapping[str, Mapping[int, int]] | Literal["earliest", "latest"]
"""A queue offset by broker and queue id, -1 for latest and -2 for earliest; or one word for all queues."""

_FORM = '{"topic": {"broker": {"0": 23}}}'


def parse_offsets(name: str, text: str, topic: str) -> TopicOffsets:
    """Reads an option's text.

    Args:
        name: The option, for errors.
        text: `earliest`, `latest`, or `{"topic": {"broker": {"0": 23}}}`; the broker `*` is each that is not named.
        topic: The topic that is read.

    Raises:
        ArgumentError: Another text, another topic, an offset below -2.

    Example:
        >>> parse_offsets("startingOffsets", '{"orders": {"broker-a": {"0": 23, "1": -1}}}', "orders")
        {'broker-a': {0: 23, 1: -1}}

    Source: `RocketMQOptions` of rocketmq-spark, `JsonUtils.partitionOffsets`.
    """
    word = text.strip().lower()
    if word in {"earliest", "latest"}:
        return "earliest" if word == "earliest" else "latest"
    try:
        members = json.loads(text)
    except json.JSONDecodeError:
        raise ArgumentError(f"{name}: expected earliest, latest or JSON as {_FORM}, got {text!r}") from None
    return offsets_of_json(name, members, topic)


def offsets_of_json(name: str, members: Any, topic: str) -> dict[str, dict[int, int]]:
    """Offsets by broker and queue.

    Args:
        name: Whose they are, for errors.
        members: `{"topic": {"broker": {"0": 23}}}`.
        topic: The topic that is read.

    Raises:
        ArgumentError: Another form or another topic.
    """
    if not isinstance(members, dict) or set(members) != {topic}:
        got = sorted(members) if isinstance(members, dict) else members
        raise ArgumentError(f"{name}: expected one topic, {topic!r}, as {_FORM}, got {got!r}")
    brokers = members[topic]
    if not isinstance(brokers, dict) or not all(isinstance(queues, dict) for queues in brokers.values()):
        raise ArgumentError(f"{name}: expected brokers with offsets by queue below the topic, got {brokers!r}")
    return {broker: by_queue_id(name, queues) for broker, queues in brokers.items()}


def offsets_json(topic: str, offsets: Mapping[MessageQueue, int]) -> dict[str, dict[str, dict[str, int]]]:
    """Offsets as an object for JSON, as `parse_offsets` reads it; in an order of their own, as Spark compares texts.

    Example:
        >>> offsets_json("orders", {MessageQueue("orders", "b", 1): 7, MessageQueue("orders", "b", 0): 5})
        {'orders': {'b': {'0': 5, '1': 7}}}
    """
    found: dict[str, dict[str, int]] = {}
    for queue in sorted(offsets):
        found.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return {topic: found}


def resolve_offsets(
    name: str,
    offsets: TopicOffsets,
    bounds: Mapping[MessageQueue, Bounds],
    *,
    edge: Literal["start", "end"],
    on_damage: Literal["fail", "warn"],
) -> dict[MessageQueue, int]:
    """The offset of each queue; one that is not named begins at its first message, or ends behind its last.

    Args:
        name: The option, for errors.
        offsets: What `parse_offsets` gave.
        bounds: The queues.
        edge: Which end of the read this is.
        on_damage: What to do with an offset that the queue does not have.

    Raises:
        ArgumentError: A broker or a queue that the topic does not have.
        DataLossError: An offset that a queue does not have, where `on_damage` is "fail".

    Example:
        >>> queue = MessageQueue("orders", "b", 0)
        >>> resolve_offsets("endingOffsets", {"b": {0: -1}}, {queue: (3, 9)}, edge="end", on_damage="fail")[queue]
        9

    Source: `DefaultMessageStore.getMinOffsetInQueue`, `getMaxOffsetInQueue`.
    """
    usual = EARLIEST if edge == "start" else LATEST
    if isinstance(offsets, str):
        usual, offsets = (EARLIEST if offsets == "earliest" else LATEST), {}
    _check_known(name, offsets, bounds)
    found = {}
    for queue, (first, last) in bounds.items():
        by_queue = offsets.get(queue.broker_name, offsets.get("*", {}))
        offset = {EARLIEST: first, LATEST: last}.get(wanted := by_queue.get(queue.queue_id, usual), wanted)
        if not first <= offset <= last:
            _missing(name, queue, offset, (first, last), on_damage)
        found[queue] = min(max(offset, first), last)
    return found


def _check_known(name: str, offsets: Mapping[str, Mapping[int, int]], queues: Collection[MessageQueue]) -> None:
    brokers = sorted({queue.broker_name for queue in queues})
    for broker, by_queue in offsets.items():
        if broker not in {"*", *brokers}:
            raise ArgumentError(f"{name}: no broker {broker}; the topic's brokers are {', '.join(brokers) or 'none'}")
        known = sorted({queue.queue_id for queue in queues if broker in {"*", queue.broker_name}})
        for queue_id in by_queue:
            if queue_id not in known:
                listed = ", ".join(map(str, known)) or "none"
                raise ArgumentError(f"{name}: no queue {queue_id} on broker {broker}; its queues are {listed}")


def _missing(name: str, queue: MessageQueue, offset: int, bounds: Bounds, on_damage: str) -> None:
    what = "has expired" if offset < bounds[0] else "is not there yet"
    text = f"{name}: broker {queue.broker_name}, queue {queue.queue_id}: offset {offset} {what}, the queue has "
    text += f"{bounds[0]} to {bounds[1]}"
    if on_damage == "fail":
        raise DataLossError(text, next_step='on_damage="warn" (failOnDataLoss=false) takes the nearest that is there')
    _log.warning("%s", text)
