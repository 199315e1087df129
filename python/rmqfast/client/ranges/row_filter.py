"""Which messages are wanted, of those that brokers do not tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from rmqfast.client.ranges.range_request import RangeRequest

if TYPE_CHECKING:
    import pyarrow as pa

_OFFSET = "physical_offset"
_TIME = "store_timestamp"
_KEYS = ("keys", "msg_id", "offset_msg_id")


class RowFilter:
    """Leaves rows out of batches: those that are damaged, of other times, or without the keys.

    Args:
        request: Which times, which keys, and whether there may be damage.

    Attributes:
        columns: The columns that it looks at.

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
            batch: It has the filter's columns.
            damaged: Physical offsets of messages that are left out.
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
