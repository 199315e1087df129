"""A log in memory with its queues: takes and gives messages as a broker's store does, records by the slow encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rmqfast.broker.messages.stored_message import in_map_order
from rmqfast.errors import RmqError
from rmqfast.message import Message
from rmqfast.store import LiveStore, QueueTimes
from rmqfast.store.config.delay_levels import DelayLevels
from rmqfast.store.writer import AppendResult
from tests.reference import properties as property_bytes
from tests.reference import record
from tests.reference.consume_queue import java_hash
from tests.reference.host import Host

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
LEVELS = DelayLevels()


class MemoryStore(LiveStore):
    """`clock` gives store times; `refusals` are raised one by one by the next appends."""

    def __init__(self, clock: Callable[[], int], store_host: str = "127.0.0.1:10911") -> None:
        self.clock = clock
        self.store_host = store_host
        self.records: dict[int, bytes] = {}
        self.queues: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        self.low: dict[tuple[str, int], int] = {}
        self.end = 0
        self.refusals: list[RmqError] = []

    def append(self, message: Message, **sent: Any) -> AppendResult:
        """Delays a message that asks for it."""
        level = min(int(message.properties.get("DELAY", "0")), max(LEVELS))
        if level <= 0:
            return self.deliver(message, **sent)
        real = {"DELAY": str(level), "REAL_TOPIC": message.topic, "REAL_QID": str(message.queue_id)}
        delayed = Message(
            SCHEDULE_TOPIC,
            message.body,
            properties=in_map_order(dict(message.properties) | real),
            queue_id=level - 1,
            flag=message.flag,
            born_timestamp=message.born_timestamp,
        )
        return self.deliver(delayed, **sent)

    def deliver(
        self,
        message: Message,
        *,
        born_host: str | None = None,
        sys_flag: int = 0,
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
    ) -> AppendResult:
        """Stores a message as it is."""
        if self.refusals:
            raise self.refusals.pop(0)
        now = self.clock()
        stored = record.complete(
            record.Record(
                topic=message.topic,
                queue_id=message.queue_id,
                queue_offset=self.queue_bounds(message.topic, message.queue_id)[1],
                physical_offset=self.end,
                body=message.body,
                property_bytes=property_bytes.encode(message.properties.items()),
                flag=message.flag,
                sys_flag=sys_flag,
                born_timestamp=now if message.born_timestamp is None else message.born_timestamp,
                born_host=host_of(born_host or self.store_host),
                store_timestamp=now,
                store_host=host_of(self.store_host),
                reconsume_times=reconsume_times,
                prepared_transaction_offset=prepared_transaction_offset,
            )
        )
        self.put_record(stored, record.encode(stored))
        return AppendResult(message.queue_id, stored.queue_offset, stored.physical_offset, stored.offset_msg_id)

    def put_record(self, stored: record.Record, data: bytes) -> None:
        """Takes a record as it stands in another log."""
        code = java_hash(stored.tags) if stored.tags else 0
        if stored.topic == SCHEDULE_TOPIC:
            code = stored.store_timestamp + LEVELS[stored.queue_id + 1]
        queue = self.queues.setdefault((stored.topic, stored.queue_id), [])
        queue.append((stored.physical_offset, len(data), code))
        self.records[stored.physical_offset] = data
        self.end = stored.physical_offset + len(data)

    def forget(self, topic: str, queue_id: int, low: int) -> None:
        """Loses what lies before an offset, as retention does."""
        for physical_offset, _, _ in self.queues[topic, queue_id][:low]:
            self.records.pop(physical_offset, None)
        self.low[topic, queue_id] = low

    def messages(self, topic: str, queue_id: int = 0) -> list[record.Record]:
        """The records of a queue."""
        found = [record.decode(self.records[at]) for at, _, _ in self.queues.get((topic, queue_id), [])]
        return [one for one in found if isinstance(one, record.Record)]

    def queue_bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        return self.low.get((topic, queue_id), 0), len(self.queues.get((topic, queue_id), []))

    def unit(self, topic: str, queue_id: int, queue_offset: int) -> tuple[int, int, int] | None:
        low, high = self.queue_bounds(topic, queue_id)
        return self.queues[topic, queue_id][queue_offset] if low <= queue_offset < high else None

    def record(self, physical_offset: int) -> bytes | None:
        return self.records.get(physical_offset)

    def progress(self, topic: str, offsets: Mapping[int, int], *, unread: bool = True) -> list[QueueTimes]:
        raise NotImplementedError

    def store_time(self, topic: str, queue_id: int, queue_offset: int) -> int:
        raise NotImplementedError

    def offset_for_time(self, topic: str, queue_id: int, when: int) -> int:
        raise NotImplementedError

    def query(self, topic: str, key: str, max_num: int, begin: int, end: int) -> tuple[list[bytes], int, int]:
        raise NotImplementedError

    def log_bounds(self) -> tuple[int, int]:
        return 0, self.end

    def earliest_store_time(self, topic: str | None = None, queue_id: int | None = None) -> int:
        raise NotImplementedError


def records_of(files: Iterable[Path]) -> Iterator[tuple[record.Record, bytes]]:
    """The records of commit-log files with their bytes."""
    for path in sorted(files):
        data, at = path.read_bytes(), 0
        while True:
            try:
                found = record.decode(data, at, int(path.name) + at)
            except record.Malformed:
                break
            if isinstance(found, record.Blank):
                break
            yield found, data[at : at + found.store_size]
            at += found.store_size


def host_of(text: str) -> Host:
    ip, _, port = text.rpartition(":")
    return Host(ip.strip("[]"), int(port))
