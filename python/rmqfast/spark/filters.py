"""Filters that Spark 4.1 and newer push down: those that a scan does exactly are taken out of the query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from rmqfast.spark.partitions import StoreRead

__all__ = ["ReadFilter"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = (1 << 63) - 1
_MAY_BE_NULL = frozenset({"broker_name", "tags", "keys", "body", "properties"})


class ReadFilter:
    """Narrows a read filter by filter; what it takes, Spark does not check again, so it takes what is exact only.

    Attributes:
        read: The narrowed read.
        is_empty: No message can pass.

    Source: `DataSourceReader.pushFilters`.
    """

    def __init__(self, read: StoreRead) -> None:
        self.read = read
        self.is_empty = False

    def rest_of(self, filters: Iterable[Filter]) -> Iterator[Filter]:
        """Takes filters, and yields those that stay Spark's.

        Args:
            filters: Conditions that rows must all pass.

        Source: as `ReadFilter`.
        """
        # "tags is not null" stands before "tags = 'A'", which makes it true
        for condition in sorted(filters, key=lambda f: isinstance(f, IsNotNull)):
            if not self._takes(condition):
                yield condition

    def _takes(self, condition: Filter) -> bool:
        attribute: tuple[str, ...] = getattr(condition, "attribute", ())
        if len(attribute) != 1:
            return False
        (column,) = attribute
        if isinstance(condition, IsNotNull):
            return column not in _MAY_BE_NULL or (column == "tags" and self.read.request.tags != "*")
        take = self._takers().get((column, type(condition)))
        return take is not None and take(condition.value)  # type: ignore[attr-defined]  # all these have one

    def _takers(self) -> dict[tuple[str, type[Filter]], Callable[[Any], bool]]:
        takers: dict[tuple[str, type[Filter]], Callable[[Any], bool]] = {
            ("topic", EqualTo): self._topic,
            ("tags", EqualTo): lambda tag: self._tags((tag,)),
            ("tags", In): self._tags,
            ("queue_id", EqualTo): lambda queue_id: self._queue_ids((queue_id,)),
            ("queue_id", In): self._queue_ids,
        }
        for column, narrow in (("queue_offset", self._offsets), ("store_timestamp", self._times)):
            for kind, bounds in _BOUNDS.items():
                takers[column, kind] = partial(narrow, bounds=bounds)
        return takers

    def _topic(self, topic: Any) -> bool:
        """Rows of a topic among all records: the request for a topic would leave out what no consume queue lists."""
        if not isinstance(topic, str):
            return False
        known = self.read.request.topic or self.read.only_topic
        if known is None:
            self.read = replace(self.read, only_topic=topic)
        self.is_empty |= known not in {None, topic}
        return True

    def _tags(self, tags: Iterable[Any]) -> bool:
        wanted = [tag for tag in tags if tag is not None]  # IN (..., NULL) is never true by the NULL
        if self.read.request.tags != "*" or not all(_is_one_tag(tag) for tag in wanted):
            return False
        self.is_empty |= not wanted
        if wanted:
            self._narrow(tags=" || ".join(wanted))
        return True

    def _queue_ids(self, queue_ids: Iterable[Any]) -> bool:
        wanted = {queue_id for queue_id in queue_ids if queue_id is not None}
        if not all(isinstance(queue_id, int) for queue_id in wanted):
            return False
        before = self.read.request.queue_ids
        left = wanted if before is None else wanted & set(before)
        self.is_empty |= not left
        self._narrow(queue_ids=tuple(sorted(left)))
        return True

    def _offsets(self, value: Any, bounds: _Bounds) -> bool:
        request = self.read.request
        by_queue = not all(isinstance(b, int | None) for b in (request.start_offset, request.end_offset))
        if by_queue or not isinstance(value, int) or not abs(value) < _LAST:
            return False
        start, end = bounds(value, value)
        self._narrow(start_offset=_later(request.start_offset, start), end_offset=_earlier(request.end_offset, end))
        return True

    def _times(self, value: Any, bounds: _Bounds) -> bool:
        if not isinstance(value, datetime) or value.tzinfo is None:
            return False
        microseconds = (value - _EPOCH) // timedelta(microseconds=1)
        # stored are whole milliseconds: between two of them, after the one is from the other
        start, end = bounds(microseconds // 1000, -(-microseconds // 1000))
        request = self.read.request
        self._narrow(start_time=_later(request.start_time, start), end_time=_earlier(request.end_time, end))
        return True

    def _narrow(self, **changes: Any) -> None:
        self.read = replace(self.read, request=replace(self.read.request, **changes))


_Bounds = Callable[[int, int], tuple[int | None, int | None]]
# What a comparison leaves of whole numbers: the first, and the one behind the last. The value may lie between `low` and
# `high`, the whole numbers around it, which are the same where it is whole.
_BOUNDS: dict[type[Filter], _Bounds] = {
    EqualTo: lambda low, high: (high, low + 1),
    GreaterThan: lambda low, _: (low + 1, None),
    GreaterThanOrEqual: lambda _, high: (high, None),
    LessThan: lambda _, high: (None, high),
    LessThanOrEqual: lambda low, _: (None, low + 1),
}


def _is_one_tag(tag: Any) -> bool:
    """Whether a tag expression of just this tag means just this tag."""
    return isinstance(tag, str) and tag == tag.strip() and tag not in {"", "*"} and "|" not in tag


def _later(before: Any, bound: int | None) -> int | None:
    return max((b for b in (before, bound) if b is not None), default=None)


def _earlier(before: Any, bound: int | None) -> int | None:
    return min((b for b in (before, bound) if b is not None), default=None)
