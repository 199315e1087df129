"""Filters on a live topic that Spark 4.1 and newer push down: those that cut its queues, and its tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql.datasource import EqualTo, Filter, In

from rmqfast.spark.live.topic_read import TopicRead
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

__all__ = ["TopicFilter"]

_MAY_BE_NULL = frozenset({"tags", "keys", "body", "properties"})
#: Queues of such topics list messages of other topics, by other offsets than these have there.
_LIGHT_QUEUE = "%LMQ%"


class TopicFilter(PushedFilters):
    """Narrows the read of a topic.

    Attributes:
        read: The narrowed read.

    Example:
        >>> from rmqfast.client.instance import ClientConfig
        >>> from rmqfast.client.ranges import RangeRequest
        >>> request = RangeRequest(config=ClientConfig(name_server="10.0.0.1:9876"), topic="orders", group="g")
        >>> taken = TopicFilter(TopicRead(request=request))
        >>> list(taken.rest_of([EqualTo(("tags",), "paid"), EqualTo(("queue_id",), 3), EqualTo(("flag",), 1)]))
        [EqualTo(attribute=('flag',), value=1)]
        >>> taken.read.request.tags, taken.read.cut.queue_ids
        ('paid', frozenset({3}))

    Source: `DataSourceReader.pushFilters`.
    """

    def __init__(self, read: TopicRead) -> None:
        super().__init__()
        self.read = read

    def _always_has(self, column: str) -> bool:
        return column not in _MAY_BE_NULL or (column == "tags" and self.read.request.tags != "*")

    def _takers(self) -> Mapping[tuple[str, type[Filter]], Taker]:
        takers: dict[tuple[str, type[Filter]], Taker] = {
            ("tags", EqualTo): lambda tag: self._tags((tag,)),
            ("tags", In): self._tags,
            ("broker_name", EqualTo): lambda name: self._broker_names((name,)),
            ("broker_name", In): self._broker_names,
        }
        takers |= {("store_timestamp", kind): partial(self._times, bounds=bounds) for kind, bounds in BOUNDS.items()}
        return takers if self.read.request.topic.startswith(_LIGHT_QUEUE) else takers | self._takers_of_places()

    def _takers_of_places(self) -> dict[tuple[str, type[Filter]], Taker]:
        takers: dict[tuple[str, type[Filter]], Taker] = {
            ("topic", EqualTo): self._topic,
            ("queue_id", EqualTo): lambda queue_id: self._queue_ids((queue_id,)),
            ("queue_id", In): self._queue_ids,
        }
        return takers | {("queue_offset", kind): partial(self._offsets, bounds=b) for kind, b in BOUNDS.items()}

    def _topic(self, topic: Any) -> bool:
        self.is_empty |= topic != self.read.request.topic
        return True

    def _tags(self, tags: Iterable[Any]) -> bool:
        wanted = tags_of(tags)
        if self.read.request.tags != "*" or wanted is None:
            return False
        self.is_empty |= not wanted
        if wanted:
            self._narrow(tags=" || ".join(wanted))
        return True

    def _broker_names(self, names: Iterable[Any]) -> bool:
        left = values_in(names, str, self.read.cut.broker_names)
        if left is None:
            return False
        self.is_empty |= not left
        self._cut(broker_names=frozenset(left))
        return True

    def _queue_ids(self, queue_ids: Iterable[Any]) -> bool:
        left = values_in(queue_ids, int, self.read.cut.queue_ids)
        if left is None:
            return False
        self.is_empty |= not left
        self._cut(queue_ids=frozenset(left))
        return True

    def _offsets(self, value: Any, bounds: Bounds) -> bool:
        if not isinstance(value, int):
            return False
        (start, end), cut = bounds(value, value), self.read.cut
        self._cut(start=later(cut.start, start), end=earlier(cut.end, end))
        return True

    def _times(self, value: Any, bounds: Bounds) -> bool:
        limits, request = times_of(value, bounds), self.read.request
        if limits is None:
            return False
        self._narrow(start_time=later(request.start_time, limits[0]), end_time=earlier(request.end_time, limits[1]))
        return True

    def _narrow(self, **changes: Any) -> None:
        self.read = replace(self.read, request=replace(self.read.request, **changes))

    def _cut(self, **changes: Any) -> None:
        self.read = replace(self.read, cut=replace(self.read.cut, **changes))
