"""Where a read of a topic starts and ends, as options say it, and what that means in the queues as they are."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Literal

from rmqfast._native import resolve_topic_offsets
from rmqfast.message import MessageQueue

__all__ = ["Bounds", "TopicOffsets", "offsets_json", "resolve_offsets"]

_log = logging.getLogger("rmqfast.spark")

Bounds = tuple[int, int]
"""A queue's first offset, and the one behind its last."""

TopicOffsets = Mapping[str, Mapping[int, int]] | Literal["earliest", "latest"]
"""A queue offset by broker and queue id, -1 for latest and -2 for earliest; or one word for all queues."""


def offsets_json(topic: str, offsets: Mapping[MessageQueue, int]) -> dict[str, dict[str, dict[str, int]]]:
    """Offsets as the option `startingOffsets` has them; in an order of their own, as Spark compares texts.

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
        offsets: By broker and queue, or a word.
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
    queues = [(queue.broker_name, queue.queue_id, *between) for queue, between in bounds.items()]
    found, warnings = resolve_topic_offsets(name, offsets, queues, edge=edge, is_strict=on_damage == "fail")
    for text in warnings:
        _log.warning("%s", text)
    return dict(zip(bounds, found, strict=True))
