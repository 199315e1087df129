"""Reads the next messages of a queue for the broker itself, as of half messages.

Source: RocketMQ's `TransactionalMessageBridge`, `DefaultMessageStore`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rmqfast.broker.messages.stored_message import StoredMessage
from rmqfast.errors import CorruptError
from rmqfast.logs import logger_of
from rmqfast.remoting.log_limit import limited
from rmqfast.store import LiveStore

__all__ = ["QueueRead", "message_at", "read_queue"]

_log = limited(logger_of(__name__))


@dataclass(frozen=True, slots=True)
class QueueRead:
    """Messages read from a queue.

    Attributes:
        next_offset: The queue offset to go on at.
        is_at_end: Nothing is there yet; otherwise, without messages, the offset leads nowhere.
    """

    messages: list[StoredMessage]
    next_offset: int
    is_at_end: bool = False


def read_queue(live: LiveStore, topic: str, queue_id: int, offset: int, count: int) -> QueueRead:
    """Reads up to `count` messages of a queue from an offset on; skips those that cannot be read."""
    low, high = live.queue_bounds(topic, queue_id)
    # an empty queue has bounds 0, 0; both are "nothing yet", not "gone"
    if high in {0, offset}:
        return QueueRead([], offset, is_at_end=True)
    if not low <= offset < high:
        return QueueRead([], low if offset < low else high)
    messages: list[StoredMessage] = []
    for position in range(offset, high):
        if messages and position - offset >= count:
            return QueueRead(messages, position)
        unit = live.unit(topic, queue_id, position)
        message = None if unit is None else message_at(live, unit[0])
        if message is not None:
            messages.append(message)
    return QueueRead(messages, high)


def message_at(live: LiveStore, physical_offset: int) -> StoredMessage | None:
    """Returns the message at a physical offset; None where no sound record starts there."""
    if physical_offset < 0:
        return None
    record = live.record(physical_offset)
    try:
        message = None if record is None else StoredMessage.parse(record)
    except CorruptError as error:
        _log.warning("no message at physical offset %d: %s", physical_offset, error)
        return None
    # bytes of a body may look like a record; they do not say that they stand here
    return message if message is not None and message.physical_offset == physical_offset else None
