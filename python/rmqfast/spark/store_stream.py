"""A store directory as a stream: the log of a live broker, followed. Its offset is a position in the log.

Source: `DataSourceStreamReader` of PySpark; `MessageStore.tail`, whose positions these are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from rmqfast._native import SparkOptions
from rmqfast.errors import ArgumentError
from rmqfast.spark.live.stream_triggers import AvailableNow, bytes_limit, is_unlimited
from rmqfast.spark.options import SourceOptions
from rmqfast.spark.partitions import PARTITION_BYTES, Partition
from rmqfast.spark.schema import agreed
from rmqfast.spark.task import read_partition
from rmqfast.store import ScanRequest

if TYPE_CHECKING:
    import pyarrow as pa

    from rmqfast.store import MessageStore

__all__ = ["StoreStreamReader", "store_stream_reader"]

_LOG = logging.getLogger("rmqfast.spark")
_POSITION = "log"
#: Messages between two places at which a batch may end.
_STEP = 256


def store_stream_reader(options: Mapping[str, str], columns: Sequence[str]) -> StoreStreamReader:
    """The stream reader of some columns.

    Args:
        options: Those of the data source.
        columns: Those of the schema.

    Raises:
        RmqError: As `SourceOptions.of` raises, an option that a stream has no use for, or other columns than the option
            `columns` says.
    """
    source_options = SourceOptions.of(options, "store stream")
    begin = SparkOptions("store stream", dict(options)).begin
    return StoreStreamReader(source_options, agreed(source_options.columns, columns), begin)


class StoreStreamReader(DataSourceStreamReader, AvailableNow):
    """Offsets are `{"log": 123456}`: between two of them there are the same rows for everybody who reads them.

    Args:
        options: Those of the data source as values.
        columns: Columns of the row, in order.
        begin: "earliest" or "latest": where a stream without a checkpoint begins, unless `startingTimestamp` says.

    Source: `MessageStore.tail`.
    """

    def __init__(self, options: SourceOptions, columns: Sequence[str], begin: str) -> None:
        self._read, self._most = options.read_of_all(columns), options.values["max_bytes_per_trigger"]
        self._start_time, self._begin = options.values["start_time"], begin
        self._target: int | None = None
        self._latest: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Where a stream without a checkpoint begins."""
        start: int | str = {"earliest": "begin", "latest": "end"}[self._begin]
        with self._read.open() as store:
            if self._start_time is not None:
                return {_POSITION: _position_of_time(store, self._start_time)}
            return {_POSITION: _position(store, start)}

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        """How far the next batch goes: behind the last message that is wholly there, or as many bytes as allowed."""
        with self._read.open() as store:
            # opened for each trigger, so that new files are seen
            end = self._latest = _position(store, "end") if self._target is None else self._target
            if start is None:
                return {_POSITION: end}
            at = _offset(start)
            # positions of another log would give rows of anywhere
            if end < at:
                raise ArgumentError(
                    f"the log of {self._read.path} ends at {end}, before the checkpoint's offset {at}: it is another "
                    "store, or one that was cut off; give this stream a checkpointLocation of its own"
                )
            # a trigger that wants all there is wins over the option
            if self._most is not None and not is_unlimited(limit) and end - at > self._most:
                end = _behind(store, at, self._most, end)
        return {_POSITION: end}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """What the options say of a batch's size."""
        return bytes_limit(self._most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The stream ends with what there is now."""
        with self._read.open() as store:
            self._target = _position(store, "end")

    def reportLatestOffset(self) -> dict[str, int] | None:  # noqa: N802
        """Where the log ends, as far as is known."""
        return None if self._latest is None else {_POSITION: self._latest}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """A task each."""
        first, last = _offset(start), _offset(end)
        if first >= last:
            return []
        cut = self._read.partition_bytes or PARTITION_BYTES
        with self._read.open() as store:
            edges = [first, *_records_between(store, first, last, cut), last]
        # no consume queue may list these records yet: only their CRC says that they are whole
        return [InputPartition(Partition("log", at, until, verify_crc=True)) for at, until in pairwise(edges)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Batches of one partition; where there is none, it is None or has None."""
        if partition is not None and partition.value is not None:
            yield from read_partition(self._read, partition.value)


def _offset(members: Any) -> int:
    offset = members.get(_POSITION) if isinstance(members, dict) else None
    # a checkpoint of a topic's stream has offsets of queues
    if len(members) != 1 or isinstance(offset, bool) or not isinstance(offset, int):
        raise ArgumentError(
            f'checkpoint: expected {{"{_POSITION}": 123}}, got {members!r}; '
            "give this stream a checkpointLocation of its own"
        )
    return offset


def _position(store: MessageStore, start: int | str) -> int:
    with store.tail(start=start) as tail:
        return tail.position


def _position_of_time(store: MessageStore, when: int) -> int:
    from datetime import UTC, datetime

    with store.tail(start=datetime.fromtimestamp(when / 1000, UTC)) as tail:
        return tail.position


def _behind(store: MessageStore, start: int, most: int, end: int) -> int:
    """A place behind a message, so many bytes from `start` on; one step further where messages are larger."""
    place = start
    with store.tail(start=start, stop=end, columns=["queue_offset"], batch_rows=_STEP) as tail:
        for _ in tail:
            # a batch has one step at least, however little is allowed: the stream would stand still
            if place > start and tail.position - start > most:
                return place
            place = tail.position
            if place - start >= most:
                return place
    return end


def _records_between(store: MessageStore, first: int, last: int, cut: int) -> list[int]:
    """Where a stretch of the log can be cut: places at which a record begins."""
    if last - first <= cut:
        return []
    # all topics: pieces of a plan by queue would end at that topic's records
    pieces, _, _ = store.plan(ScanRequest(), cut_bytes=cut)
    return [start for _, start, _, _ in pieces if first < start < last]
