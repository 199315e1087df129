"""Makes Arrow batches of pulled messages, without an object for each message, and filters their rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rmqfast._native import Fetched, fetched_to_arrow
from rmqfast.client.ranges.range_request import RangeRequest
from rmqfast.errors import CorruptError, MissingExtraError
from rmqfast.store import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger(__name__)

_PLACE = ("broker_name", "queue_id", "queue_offset", "body")
_OFFSET = "physical_offset"
_TIME = "store_timestamp"
_KEYS = ("keys", "msg_id", "offset_msg_id")


class RangeRows:
    """Makes batches of pulled messages.

    Args:
        request: The columns and the filters.

    Source: none; Java's client makes an object of each message.
    """

    def __init__(self, request: RangeRequest) -> None:
        self._request, self._columns = request, list(request.columns or COLUMNS)
        self._filter = RowFilter(request)

    def batches(self, fetched: Sequence[Fetched]) -> Iterator[pa.RecordBatch]:
        """Yields batches of the requested columns and messages.

        Raises:
            CorruptError: A body does not decompress, or with `verify_crc` does not match its CRC, unless
                `on_damage` is "warn".
            MissingExtraError: pyarrow is not installed.
        """
        changed = self._changed(fetched) if self._request.verify_crc else ()
        if self._request.keys is not None and not self._has_any(fetched):
            return  # keys are rare: no body is decompressed for nothing
        for batch in self._made(fetched, self._columns, changed):
            if "body" in self._columns and batch.column("body").null_count:
                self._tell_of_bodies(fetched, changed)
            if batch.num_rows:
                yield batch

    def _has_any(self, fetched: Sequence[Fetched]) -> bool:
        return any(batch.num_rows for batch in self._made(fetched, list(self._filter.columns)))

    def _made(
        self, fetched: Sequence[Fetched], columns: list[str], changed: Sequence[int] = ()
    ) -> Iterator[pa.RecordBatch]:
        read = [*columns, *(name for name in self._filter.columns if name not in columns)]
        most = self._request.max_body_bytes
        made = fetched_to_arrow(fetched, read, microseconds=self._request.microseconds, max_body_bytes=most)
        for batch in map(_pyarrow().record_batch, made):
            kept = self._filter.kept(batch, changed)
            yield kept if len(read) == len(columns) else kept.select(columns)

    def _changed(self, fetched: Sequence[Fetched]) -> list[int]:
        """Physical offsets of the messages whose bodies are not those that were stored."""
        found = [view for answer in fetched for view in answer.changed()]
        if found:
            places = [_place(view.broker_name, view.queue_id, view.queue_offset) for view in found]
            self._tell(f"{len(places)} bodies do not match their CRC", places, "leaves them out")
        return [view.physical_offset for view in found]

    def _tell_of_bodies(self, fetched: Sequence[Fetched], changed: Sequence[int]) -> None:
        """Reports unreadable bodies; finds them by a second pass, as they are rare."""
        rows = [row for batch in self._made(fetched, list(_PLACE), changed) for row in batch.to_pylist()]
        places = [
            _place(row["broker_name"], row["queue_id"], row["queue_offset"]) for row in rows if row["body"] is None
        ]
        limit = self._request.max_body_bytes
        self._tell(f"{len(places)} bodies do not decompress to {limit} bytes at most", places, "gives them as null")

    def _tell(self, what: str, places: Sequence[str], otherwise: str) -> None:
        text = f"topic {self._request.topic}: {what}: {'; '.join(places)}"
        if self._request.on_damage == "fail":
            raise CorruptError(f'{text}; on_damage="warn" (failOnDataLoss=false) {otherwise}')
        _log.warning("%s", text)


def _place(broker_name: str | None, queue_id: int, queue_offset: int) -> str:
    return f"broker {broker_name}, queue {queue_id}, offset {queue_offset}"


def _pyarrow() -> Any:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtraError("pyarrow is needed for this: pip install 'rmqfast[arrow]'") from error
    return pa


class RowFilter:
    """Filters rows by damage, store time and keys, which brokers do not.

    Args:
        request: The filters.

    Attributes:
        columns: The columns that the filters need.

    Source: `Selector` of the store crate, whose rows these are.
    """

    def __init__(self, request: RangeRequest) -> None:
        self._request = request
        self._has_times = request.start_time is not None or request.end_time is not None
        wanted = ((request.verify_crc, (_OFFSET,)), (self._has_times, (_TIME,)), (request.keys is not None, _KEYS))
        self.columns = tuple(name for is_wanted, names in wanted if is_wanted for name in names)

    def kept(self, batch: pa.RecordBatch, damaged: Sequence[int] = ()) -> pa.RecordBatch:
        """The rows that are wanted, in their order.

        Args:
            batch: Has the filter's columns.
            damaged: Physical offsets of messages to drop.
        """
        kept = _without(batch, damaged) if damaged else batch
        kept = self._in_time(kept) if self._has_times else kept
        return kept if self._request.keys is None else kept.take(rows_with_key(kept, self._keys))

    @cached_property
    def _keys(self) -> pa.Array:
        import pyarrow as pa

        return pa.array(self._request.keys, pa.string())

    def _in_time(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow.compute as pc

        times = batch.column(_TIME).cast("int64")
        scale = 1000 if self._request.microseconds else 1
        mask = None
        for bound, holds in ((self._request.start_time, pc.greater_equal), (self._request.end_time, pc.less)):
            if bound is not None:
                passes = holds(times, bound * scale)
                mask = passes if mask is None else pc.and_(mask, passes)
        return batch if mask is None or pc.all(mask).as_py() else batch.filter(mask)


def _without(batch: pa.RecordBatch, damaged: Sequence[int]) -> pa.RecordBatch:
    import pyarrow as pa
    import pyarrow.compute as pc

    return batch.filter(pc.invert(pc.is_in(batch.column(_OFFSET), value_set=pa.array(damaged, pa.int64()))))


def rows_with_key(batch: pa.RecordBatch, keys: pa.Array) -> pa.Array:
    """Positions of the rows that have one of the keys, in their order.

    Args:
        batch: It has the columns `keys`, `msg_id` and `offset_msg_id`.
        keys: The keys.

    Example:
        >>> import pyarrow as pa
        >>> stored, ids = ["a b", None, "ab", "b"], ["1", "a", "3", "4"]
        >>> batch = pa.RecordBatch.from_pydict({"keys": stored, "msg_id": ids, "offset_msg_id": ["w", "x", "y", "z"]})
        >>> rows_with_key(batch, pa.array(["a"])).to_pylist()
        [0, 1]

    Source: `IndexService.buildIndex`, which lists UNIQ_KEY and the words of KEYS.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.split_pattern(batch.column("keys"), " ")
    by_word = pc.list_parent_indices(words).filter(pc.is_in(pc.list_flatten(words), value_set=keys))
    ids = batch.column("msg_id")
    # the id of a message without UNIQ_KEY says where it is stored, and is no key
    is_unique = pc.and_(pc.is_in(ids, value_set=keys), pc.not_equal(ids, batch.column("offset_msg_id")))
    by_id = pc.indices_nonzero(is_unique)
    found = pc.unique(pa.concat_arrays([by_word.cast("int64"), by_id.cast("int64")]))
    return found.take(pc.sort_indices(found))
