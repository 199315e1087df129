"""Stores messages of the control plane: retries, due delayed messages, ends of transactions, and replies.

Source: RocketMQ's `MessageStore`, `PutMessageStatus`, `ScheduleMessageService`, `ReplyMessageProcessor`.
"""

from __future__ import annotations

from typing import Protocol, TypedDict, Unpack

from rmqfast._native import DataPlane
from rmqfast.errors import RmqError
from rmqfast.message import Message
from rmqfast.store.config.delay_levels import SCHEDULE_TOPIC
from rmqfast.store.writer import AppendResult, WritableStore
from rmqfast.system import monotonic


class MessageOrigin(TypedDict, total=False):
    """Values of a stored message that do not come from its content; see `WritableStore.append`."""

    born_host: str | None
    sys_flag: int
    reconsume_times: int
    prepared_transaction_offset: int


class Append(Protocol):
    """The type of `WritableStore.append`, which stores one message."""

    def __call__(self, message: Message, **origin: Unpack[MessageOrigin]) -> AppendResult:
        """Stores the message and returns its location.

        Raises:
            RmqError: The message is not stored, or, for `FlushTimeoutError`, not on disk in time; see its `put_status`.
        """


def status_of(error: Exception) -> str:
    """Returns the name of RocketMQ's `PutMessageStatus` for a failed append."""
    return getattr(error, "put_status", None) or "UNKNOWN_ERROR"


_SCHEDULE_CONSUMER = "SCHEDULE_CONSUMER"


class InternalAppends:
    """Stores and counts messages of the control plane. Does not wait for the disk: in RocketMQ, only sends wait for it.

    Messages that the broker creates count in the statistics of the store but of no topic. Replies and delivered delayed
    messages count in their topics, too.
    """

    def __init__(
        self, store: WritableStore, data_plane: DataPlane, *, cluster_name: str, counts_due: bool = True
    ) -> None:
        self._store = store
        self._data_plane = data_plane
        self._cluster_name = cluster_name
        self._counts_due = counts_due

    def count_delivery(self, topic: str, level: int, size: int) -> None:
        """Counts a delayed message that was delivered."""
        if self._counts_due:
            self._data_plane.count("QUEUE_GET", f"{SCHEDULE_TOPIC}@{level - 1}@{_SCHEDULE_CONSUMER}", size)
            self._data_plane.count("GROUP_GET", f"{SCHEDULE_TOPIC}@{_SCHEDULE_CONSUMER}", size)
            self._count_sent(topic, size)

    def append_reply(self, message: Message, **origin: Unpack[MessageOrigin]) -> AppendResult:
        """Stores a reply and returns its location. A reply is counted like a send."""
        place, topic, size = self._append(message, origin)
        self._count_sent(topic, size)
        return place

    def append(self, message: Message, **origin: Unpack[MessageOrigin]) -> AppendResult:
        place, topic, size = self._append(message, origin)
        self._data_plane.count("STORE_PUT", topic, size)
        return place

    def append_due(self, message: Message, **origin: Unpack[MessageOrigin]) -> AppendResult:
        place, topic, size = self._append(message, origin, is_due=True)
        if not self._counts_due:
            self._data_plane.count("STORE_PUT", topic, size)
        return place

    def _count_sent(self, topic: str, size: int) -> None:
        self._data_plane.count("TOPIC_PUT", topic, size)
        self._data_plane.count("BROKER_PUT", self._cluster_name, size)

    def _append(
        self, message: Message, origin: MessageOrigin, *, is_due: bool = False
    ) -> tuple[AppendResult, str, int]:
        """Stores a message. Returns its location, its topic in the store, and the size of its record."""
        start = monotonic()
        try:
            place = self._store.append(message, **origin, is_due=is_due, waits=False)
        except RmqError:
            self._data_plane.count_failed_put()
            raise
        # A dead letter has DELAY 0, which means no delay.
        is_delayed = not is_due and int(message.properties.get("DELAY", "0")) > 0
        topic = SCHEDULE_TOPIC if is_delayed else message.topic
        unit = self._store.live.unit(topic, place.queue_id, place.queue_offset)
        self._data_plane.note_put(int((monotonic() - start) * 1000))
        return place, topic, 0 if unit is None else unit[1]
