"""Filters on a store that Spark 4.1 and newer push down: those that a scan does exactly are taken out of the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql.datasource import EqualTo, Filter, In

from rmqfast.spark.partitions import StoreRead
from rmqfast.spark.pushed_filters import (
    BOUNDS,
    Bounds,
    PushedFilters,
    Taker,
    earlier,
    later,
    tags_of,
    times_of,
    values_in,
)

__all__ = ["ReadFilter"]

_LAST = (1 << 63) - 1
_MAY_BE_NULL = frozenset({"broker_name", "tags", "keys", "body", "properties"})


class ReadFilter(PushedFilters):
    """Narrows the read of a store.

    Attributes:
        read: The narrowed read.

    Source: `DataSourceReader.pushFilters`.
    """

    def __init__(self, read: StoreRead) -> None:
        super().__init__()
        self.read = read

    def _always_has(self, column: str) -> bool:
        return column not in _MAY_BE_NULL or (column == "tags" and self.read.request.tags != "*")

    def _takers(self) -> Mapping[tuple[str, type[Filter]], Taker]:
        takers: dict[tuple[str, type[Filter]], Taker] = {
            ("topic", EqualTo): self._topic,
            ("tags", EqualTo): lambda tag: self._tags((tag,)),
            ("tags", In): self._tags,
            ("queue_id", EqualTo): lambda queue_id: self._queue_ids((queue_id,)),
            ("queue_id", In): self._queue_ids,
        }
        for column, narrow in (("queue_offset", self._offsets), ("store_timestamp", self._times)):
            for kind, bounds in BOUNDS.items():
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
        wanted = tags_of(tags)
        if self.read.request.tags != "*" or wanted is None:
            return False
        self.is_empty |= not wanted
        if wanted:
            self._narrow(tags=" || ".join(wanted))
        return True

    def _queue_ids(self, queue_ids: Iterable[Any]) -> bool:
        left = values_in(queue_ids, int, self.read.request.queue_ids)
        if left is None:
            return False
        self.is_empty |= not left
        self._narrow(queue_ids=tuple(sorted(left)))
        return True

    def _offsets(self, value: Any, bounds: Bounds) -> bool:
        request = self.read.request
        by_queue = not all(isinstance(b, int | None) for b in (request.start_offset, request.end_offset))
        if by_queue or not isinstance(value, int) or not abs(value) < _LAST:
            return False
        start, end = bounds(value, value)
        self._narrow(start_offset=later(request.start_offset, start), end_offset=earlier(request.end_offset, end))
        return True

    def _times(self, value: Any, bounds: Bounds) -> bool:
        limits, request = times_of(value, bounds), self.read.request
        if limits is None:
            return False
        self._narrow(start_time=later(request.start_time, limits[0]), end_time=earlier(request.end_time, limits[1]))
        return True

    def _narrow(self, **changes: Any) -> None:
        self.read = replace(self.read, request=replace(self.read.request, **changes))
