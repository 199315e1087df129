"""Filters on a live topic: those that cut its queues, and those on its tags, are taken out of the query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rmqfast._native import Selection
from rmqfast.spark.live.topic_read import RangeCut, TopicRead
from rmqfast.spark.pushed_filters import rest_of

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

__all__ = ["NarrowedTopic", "narrowed_topic"]


class NarrowedTopic(NamedTuple):
    """What filters leave of the read of a topic.

    Attributes:
        read: The narrowed read.
        rest: Filters that stay Spark's.
        is_empty: No message can pass.
    """

    read: TopicRead
    rest: list[Filter]
    is_empty: bool


def narrowed_topic(read: TopicRead, filters: Iterable[Filter]) -> NarrowedTopic:
    """Takes the filters that are done exactly.

    Args:
        read: What is read.
        filters: Conditions that rows must all pass.

    Example:
        >>> from pyspark.sql.datasource import EqualTo
        >>> from rmqfast.client.instance import ClientConfig
        >>> from rmqfast.client.ranges import RangeRequest
        >>> request = RangeRequest(config=ClientConfig(name_server="10.0.0.1:9876"), topic="orders", group="g")
        >>> filters = [EqualTo(("tags",), "paid"), EqualTo(("queue_id",), 3), EqualTo(("flag",), 1)]
        >>> narrowed, rest, _ = narrowed_topic(TopicRead(request=request), filters)
        >>> rest
        [EqualTo(attribute=('flag',), value=1)]
        >>> narrowed.request.tags, narrowed.cut.queue_ids
        ('paid', frozenset({3}))

    Source: `DataSourceReader.pushFilters`.
    """
    request, cut = read.request, read.cut
    selection = Selection(
        "topic",
        topic=request.topic,
        has_tags=request.tags not in {"", "*"},
        broker_names=None if cut.broker_names is None else sorted(cut.broker_names),
        # not the read's own `queue_ids`: one of those that no broker has is an error
        queue_ids=None if cut.queue_ids is None else sorted(cut.queue_ids),
        offsets=(cut.start, cut.end),
        times=(request.start_time, request.end_time),
    )
    rest = rest_of(selection, filters)
    changes: dict[str, Any] = {"start_time": selection.times[0], "end_time": selection.times[1]}
    if selection.tags is not None:
        changes["tags"] = " || ".join(selection.tags)
    left = RangeCut(
        broker_names=None if selection.broker_names is None else frozenset(selection.broker_names),
        queue_ids=None if selection.queue_ids is None else frozenset(selection.queue_ids),
        start=selection.offsets[0],
        end=selection.offsets[1],
    )
    return NarrowedTopic(replace(read, request=replace(request, **changes), cut=left), rest, selection.is_empty)
