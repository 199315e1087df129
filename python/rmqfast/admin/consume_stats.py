"""Progress of consumer groups: parses the consume statistics of brokers and adds them up.

Source: `DefaultMQAdminExtImpl.examineConsumeStats`, `ConsumeStats`, `OffsetWrapper`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

from rmqfast.admin.admin_client import AdminClient, BrokerAddress
from rmqfast.admin.questions import Question
from rmqfast.admin.topics import MAX_QUEUES, MAX_STATS_BYTES
from rmqfast.html import table
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode
from rmqfast.remoting.protocol.json_object import JsonObject

#: Members of an `OffsetWrapper`, in the order of `QueueProgress`; the last one only our brokers tell.
_NUMBERS = ("brokerOffset", "consumerOffset", "lastTimestamp")
_DETAILED = (*_NUMBERS, "unreadTimestamp")
_COLUMNS = ("topic", "broker_name", "queue_id", "broker_offset", "consumer_offset", "diff", "last_timestamp")


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """Progress of a group in one queue: its offset, and the end of the queue.

    Attributes:
        broker_offset: End of the queue.
        consumer_offset: Next offset that the group consumes; 0 also if it has no offset.
        last_timestamp: Store time of the last consumed message, in milliseconds since 1970; 0 for none.
        unread_timestamp: Store time of the first message that is stored and not consumed, in milliseconds since 1970; 0
            for none, and `None` if it was not told. Only a snapshot has it; of RocketMQ's brokers, that of the queue in
            the topic where it is oldest.

    Example:
        >>> QueueProgress("orders", "broker-a", 0, broker_offset=10, consumer_offset=7, last_timestamp=0).diff
        3
    """

    topic: str
    broker_name: str
    queue_id: int
    broker_offset: int
    consumer_offset: int
    last_timestamp: int
    unread_timestamp: int | None = None

    @property
    def queue(self) -> MessageQueue:
        return MessageQueue(self.topic, self.broker_name, self.queue_id)

    @property
    def diff(self) -> int:
        """Backlog of the queue: the number of messages that the group has not read."""
        return self.broker_offset - self.consumer_offset


@dataclass(frozen=True, slots=True)
class ConsumeStats(Sequence[QueueProgress]):
    """Progress of a group in all its queues.

    Attributes:
        rows: One row per queue, sorted by topic, broker and queue.
        consume_tps: Messages consumed per second in the last minute, summed over all brokers.

    Example:
        >>> rows = [QueueProgress("orders", "broker-a", number, 10, 7, 0) for number in range(2)]
        >>> ConsumeStats(tuple(rows)).diff_total
        6
    """

    rows: tuple[QueueProgress, ...]
    consume_tps: float = 0.0

    @property
    def diff_total(self) -> int:
        """Backlog of all queues: the number of messages that the group has not read."""
        return sum(row.diff for row in self.rows)

    @property
    def unread_timestamp(self) -> int | None:
        """Store time of the oldest message not consumed, in milliseconds since 1970; 0 for none, `None` if not told."""
        behind = [row.unread_timestamp for row in self.rows if row.diff > 0]
        known = [each for each in behind if each]
        # 0 means that nothing that is stored is unread: the rest has expired.
        return min(known) if known else (None if None in behind else 0)

    def unread_age(self, now: int) -> int | None:
        """Returns the age of the oldest message not consumed in milliseconds, 0 for none, `None` if not told.

        `now` is in milliseconds since 1970.
        """
        unread = self.unread_timestamp
        return max(0, now - unread) if unread else unread

    def with_unread(self, unread_timestamp: int) -> ConsumeStats:
        """Returns a copy with the store time of the oldest unread message, which a broker told of all its queues."""
        rows = (replace(row, unread_timestamp=unread_timestamp if row.diff > 0 else 0) for row in self.rows)
        return replace(self, rows=tuple(rows))

    def of_queue(self, queue: MessageQueue) -> QueueProgress | None:
        """Returns how far one queue is read, or `None` if the group has no offset there."""
        return next((row for row in self.rows if row.queue == queue), None)

    @overload
    def __getitem__(self, at: int) -> QueueProgress: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[QueueProgress]: ...

    def __getitem__(self, at: int | slice) -> QueueProgress | Sequence[QueueProgress]:
        return self.rows[at]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[QueueProgress]:
        return iter(self.rows)

    def _repr_html_(self) -> str:
        rows = [[getattr(row, column) for column in _COLUMNS] for row in self.rows]
        caption = f"{self.diff_total:,} messages behind, {self.consume_tps:.1f} consumed a second"
        return table(_COLUMNS, rows, caption=caption)

    @classmethod
    def of_body(cls, body: bytes) -> ConsumeStats:
        """Parses the answer of one broker. Raises `ResponseError` if a JSON field has the wrong type."""
        return cls.of_json(JsonObject.of_body(body, most=MAX_STATS_BYTES))

    @classmethod
    def of_json(cls, members: JsonObject, *, is_detailed: bool = False) -> ConsumeStats:
        """Parses one group. With `is_detailed`, a missing time of the first unread message means that there is none."""
        table = members.objects_by_queue("offsetTable", most=MAX_QUEUES)
        names = _DETAILED if is_detailed else _NUMBERS
        rows = [
            QueueProgress(queue.topic, queue.broker_name, queue.queue_id, *item.numbers(names))
            for queue, item in table.items()
        ]
        return cls(_sort(rows), members.fraction("consumeTps"))

    @classmethod
    def of_brokers(cls, answers: Sequence[ConsumeStats]) -> ConsumeStats:
        """Returns the sum of the statistics of several brokers."""
        return cls(_sort([row for stats in answers for row in stats]), sum(stats.consume_tps for stats in answers))


def time_span_question(address: str, group: str, topic: str) -> Question:
    return Question(address, RequestCode.QUERY_CONSUME_TIME_SPAN, {"group": group, "topic": topic})


def unread_of_body(body: bytes) -> int:
    """Parses the answer to request 303. Returns the store time of the oldest unread message in all queues, 0 for none.

    The broker tells the age of each queue's first unread message, so the result is late by the time of the answer.
    """
    rows = JsonObject.of_body(body, most=MAX_STATS_BYTES).objects("consumeTimeSpanSet", most=MAX_QUEUES)
    ages = [age for row in rows if (age := row.number("delayTime", 0)) > 0]
    return time.time_ns() // 1_000_000 - max(ages) if ages else 0


def stats_at(client: AdminClient, broker: BrokerAddress, group: str, topic: str | None = None) -> ConsumeStats:
    fields = {"consumerGroup": group, "topic": topic}
    return ConsumeStats.of_body(client.ask(broker.address, RequestCode.GET_CONSUME_STATS, fields, slow=True).body)


def _sort(rows: Sequence[QueueProgress]) -> tuple[QueueProgress, ...]:
    return tuple(sorted(rows, key=lambda row: (row.topic, row.broker_name, row.queue_id)))
