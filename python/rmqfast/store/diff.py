"""Compares the messages of two stores, such as a store and its copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rmqfast._native import COLUMNS
from rmqfast.arguments import Time
from rmqfast.errors import UnknownTopicError
from rmqfast.extras import import_extra
from rmqfast.html import table
from rmqfast.store.request import ScanArguments

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqfast.store.reader import MessageStore

Kind = Literal["only a", "only b", "changed"]

#: Columns that differ between a store and its copy or export although the message is the same.
#: The id of the producer is a property; a message without one has the offset's id.
_OF_THE_STORE = frozenset({"broker_name", "physical_offset", "msg_id", "offset_msg_id", "store_host"})
_COMPARED = tuple(column for column in COLUMNS if column not in _OF_THE_STORE)
#: Ranges that a report lists; further ones are counted.
_MOST_RANGES = 10_000


class Difference(NamedTuple):
    """Queue offsets whose messages are in one store only, or differ.

    Attributes:
        topic: The topic.
        queue_id: The queue.
        kind: "only a", "only b", or "changed" for offsets at which both have a message, but not the same.
        start: First queue offset.
        end: Queue offset behind the last one.
    """

    topic: str
    queue_id: int
    kind: Kind
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class StoreDiff:
    """The result of `diff_stores`.

    Attributes:
        equal: Number of messages that are the same in both.
        only_a: Number of messages that only the first store has.
        only_b: Number of messages that only the second store has.
        changed: Number of offsets at which the messages differ.
        differences: Ranges of offsets, by topic and queue, at most 10,000.
        more: Number of further ranges.
    """

    equal: int
    only_a: int
    only_b: int
    changed: int
    differences: list[Difference]
    more: int

    @property
    def is_equal(self) -> bool:
        """Whether both stores have the same messages."""
        return not (self.only_a or self.only_b or self.changed)

    def _repr_html_(self) -> str:
        caption = f"{self.equal:,} equal, {self.only_a:,} only a, {self.only_b:,} only b, {self.changed:,} changed"
        count = len(self.differences) + self.more
        return table(Difference._fields, self.differences, caption=caption, count=count)


def diff_stores(
    a: MessageStore,
    b: MessageStore,
    topics: str | Sequence[str] | None = None,
    *,
    start_time: Time | None = None,
    end_time: Time | None = None,
) -> StoreDiff:
    """Compares the messages of two stores by topic, queue and queue offset.

    Messages are the same if all columns are equal, except those that belong to the store: `physical_offset`, the ids
    made of it, `store_host` and `broker_name`. So a mirror's copy and an export compare with their origin. Memory does
    not grow with the stores.

    Args:
        a: A store.
        b: Another store.
        topics: One topic or several to compare. Default: all topics of both.
        start_time: Earliest store time.
        end_time: Store time before which to stop, such as a time that a copy has reached.

    Raises:
        StoreError: A store cannot be read.
        UnknownTopicError: Neither store has a topic.
        ArgumentError: An invalid time.
        MissingExtraError: pyarrow is not installed.

    Warns:
        DamageWarning: Some bytes were damaged. Messages that one of the stores lost by that are differences.

    Example:
        >>> import rmqfast
        >>> from rmqfast.store import diff_stores
        >>> store = rmqfast.open_store(getfixture("golden_store")("basic-4.9.4"))
        >>> report = store.export(getfixture("tmp_path") / "part", "fx_q1", end_offset=1000)
        >>> found = diff_stores(store, rmqfast.open_store(report.path), ["fx_q1"])
        >>> found.equal, found.differences
        (1000, [Difference(topic='fx_q1', queue_id=0, kind='only a', start=1000, end=1259)])
    """
    import_extra("pyarrow", "arrow")
    own: ScanArguments = {"start_time": start_time, "end_time": end_time, "columns": _COMPARED}
    report = _Report()
    in_a, in_b = a.topics(), b.topics()
    known = in_a.keys() | in_b.keys()
    chosen = sorted(known) if topics is None else [topics] if isinstance(topics, str) else list(topics)
    for topic in chosen:
        if topic not in known:
            raise UnknownTopicError(f"unknown topic {topic!r} in {a.path} and in {b.path}")
    for topic in chosen:
        queues = in_a.get(topic, {}).keys() | in_b.get(topic, {}).keys()
        for queue_id in sorted(queues):
            rows_a, rows_b = (
                _Rows(_batches(store, topic, queue_id, own) if queue_id in its.get(topic, {}) else iter(()))
                for store, its in ((a, in_a), (b, in_b))
            )
            report.compare((topic, queue_id), rows_a, rows_b)
    return report.result()


def _batches(store: MessageStore, topic: str, queue_id: int, own: ScanArguments) -> Iterator[pa.RecordBatch]:
    arguments: ScanArguments = {**own, "queue_ids": queue_id}
    # within a queue the log is in the order of offsets
    return store.scan(topic, **arguments).batches()


class _Rows:
    """Messages of one queue in the order of their offsets, of which a part at a time is in memory."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._batch: pa.RecordBatch | None = None
        self._offsets: list[int] = []

    def last_offset(self) -> int | None:
        """Returns the last offset in memory, or None if all messages were taken."""
        while not self._offsets:
            batch = next(self._batches, None)
            if batch is None:
                return None
            self._batch, self._offsets = batch, batch.column("queue_offset").to_pylist()
        return self._offsets[-1]

    def take_until(self, last: int) -> tuple[list[int], pa.RecordBatch | None]:
        """Returns the offsets and messages in memory up to an offset, and forgets them."""
        count = sum(offset <= last for offset in self._offsets)
        offsets, batch = self._offsets[:count], self._batch
        if batch is None or not count:
            return [], None
        self._offsets, self._batch = self._offsets[count:], batch.slice(count)
        return offsets, batch.slice(0, count)


class _Report:
    def __init__(self) -> None:
        self._counts: dict[str, int] = {"equal": 0, "only a": 0, "only b": 0, "changed": 0}
        self._differences: list[Difference] = []
        self._more = 0

    def compare(self, queue: tuple[str, int], rows_a: _Rows, rows_b: _Rows) -> None:
        while True:
            ends = [end for end in (rows_a.last_offset(), rows_b.last_offset()) if end is not None]
            if not ends:
                return
            # what both have up to here is in memory
            self._compare_parts(queue, rows_a.take_until(min(ends)), rows_b.take_until(min(ends)))

    def result(self) -> StoreDiff:
        counts = {kind.replace(" ", "_"): count for kind, count in self._counts.items()}
        return StoreDiff(**counts, differences=self._differences, more=self._more)

    def _compare_parts(
        self,
        queue: tuple[str, int],
        part_a: tuple[list[int], pa.RecordBatch | None],
        part_b: tuple[list[int], pa.RecordBatch | None],
    ) -> None:
        (offsets_a, batch_a), (offsets_b, batch_b) = part_a, part_b
        if offsets_a == offsets_b and batch_a is not None and batch_a.equals(batch_b):
            self._counts["equal"] += len(offsets_a)
            return
        messages_a = _by_offset(offsets_a, batch_a)
        messages_b = _by_offset(offsets_b, batch_b)
        for offset in sorted(messages_a.keys() | messages_b.keys()):
            if offset not in messages_b:
                self._note(queue, "only a", offset)
            elif offset not in messages_a:
                self._note(queue, "only b", offset)
            elif messages_a[offset] != messages_b[offset]:
                self._note(queue, "changed", offset)
            else:
                self._counts["equal"] += 1

    def _note(self, queue: tuple[str, int], kind: Kind, offset: int) -> None:
        self._counts[kind] += 1
        last = self._differences[-1] if self._differences else None
        if last is not None and not self._more and last[:3] == (*queue, kind) and last.end == offset:
            self._differences[-1] = last._replace(end=offset + 1)
        elif len(self._differences) < _MOST_RANGES:
            self._differences.append(Difference(*queue, kind, offset, offset + 1))
        else:
            self._more += 1


def _by_offset(offsets: list[int], batch: pa.RecordBatch | None) -> dict[int, dict[str, Any]]:
    return {} if batch is None else dict(zip(offsets, batch.to_pylist(), strict=True))
