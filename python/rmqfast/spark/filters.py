"""Filters on a store: those that a scan does exactly are taken out of the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rmqfast._native import Selection
from rmqfast.spark.partitions import StoreRead
from rmqfast.spark.pushed_filters import rest_of

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

__all__ = ["NarrowedStore", "narrowed_store"]


class NarrowedStore(NamedTuple):
    """What filters leave of the read of a store.

    Attributes:
        read: The narrowed read.
        rest: Filters that stay Spark's.
        is_empty: No message can pass.
    """

    read: StoreRead
    rest: list[Filter]
    is_empty: bool


def narrowed_store(read: StoreRead, filters: Iterable[Filter]) -> NarrowedStore:
    """Takes the filters that a scan does exactly.

    Args:
        read: What is read.
        filters: Conditions that rows must all pass.

    Source: `DataSourceReader.pushFilters`.
    """
    request = read.request
    start, end = request.start_offset, request.end_offset
    # a filter on offsets cannot narrow a bound of each queue: it stays Spark's
    by_queue = isinstance(start, Mapping) or isinstance(end, Mapping)
    selection = Selection(
        topic=request.topic,
        only_topic=read.only_topic,
        has_tags=request.tags not in {"", "*"},
        broker_names=None if request.broker_name is None else [request.broker_name],
        queue_ids=request.queue_ids,
        has_offsets_by_queue=by_queue,
        offsets=(None, None) if isinstance(start, Mapping) or isinstance(end, Mapping) else (start, end),
        times=(request.start_time, request.end_time),
    )
    rest = rest_of(selection.take, filters)
    changes: dict[str, Any] = {"start_time": selection.times[0], "end_time": selection.times[1]}
    changes["queue_ids"] = selection.queue_ids
    # otherwise the mapping would be replaced by None
    if not by_queue:
        changes |= {"start_offset": selection.offsets[0], "end_offset": selection.offsets[1]}
    if selection.tags is not None:
        # no tag among them has a `|`: such a filter was not taken
        changes["tags"] = " || ".join(selection.tags)
    narrowed = replace(read, request=replace(request, **changes), only_topic=selection.only_topic)
    return NarrowedStore(narrowed, rest, selection.is_empty)
