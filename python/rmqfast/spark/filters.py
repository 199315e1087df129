"""The filters that Spark 4.1 and newer push down. `rust/spark` decides which of them a read applies itself.

Source: `DataSourceReader.pushFilters` of PySpark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

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

from rmqfast._native import Selection
from rmqfast.spark.partitions import StoreRead

_KINDS: dict[type[Filter], str] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    In: "in",
    IsNotNull: "not null",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NarrowedStore(NamedTuple):
    """Result of a push-down: the narrowed read, the filters that Spark must apply, and whether no message can match."""

    read: StoreRead
    rest: list[Filter]
    is_empty: bool


def narrowed_store(read: StoreRead, filters: Iterable[Filter]) -> NarrowedStore:
    """Returns a store read, narrowed by the filters that a scan can apply exactly, and the other filters."""
    selection = Selection(read.request, only_topic=read.only_topic)
    rest = rest_of(selection.take, filters)
    narrowed = replace(read, request=read.request.with_selection(selection), only_topic=selection.only_topic)
    return NarrowedStore(narrowed, rest, selection.is_empty)


def narrowed_stores(reads: Sequence[StoreRead], filters: Iterable[Filter]) -> tuple[list[StoreRead], list[Filter]]:
    """Returns the reads of stores that may have matching messages, narrowed, and the filters that Spark must apply."""
    all_of_them = list(filters)
    narrowed = [narrowed_store(read, all_of_them) for read in reads]
    left = {id(each) for one in narrowed for each in one.rest}
    return [one.read for one in narrowed if not one.is_empty], [each for each in all_of_them if id(each) in left]


def rest_of(
    take: Callable[[list[tuple[str, str, list[object]]]], list[bool]], filters: Iterable[Filter]
) -> list[Filter]:
    """Passes filters to `take` as (kind, column, values). Returns the filters that Spark must apply."""
    all_of_them = list(filters)
    # Exact class and whole columns only: a subclass or a struct field may mean something else.
    known = [f for f in all_of_them if type(f) in _KINDS and len(getattr(f, "attribute", ())) == 1]
    is_taken = take([(_KINDS[type(f)], f.attribute[0], _values(f)) for f in known])  # type: ignore[attr-defined]
    taken = {id(f) for f, is_gone in zip(known, is_taken, strict=True) if is_gone}
    return [f for f in all_of_them if id(f) not in taken]


def _values(condition: Any) -> list[object]:
    if isinstance(condition, IsNotNull):
        return []
    return [_plain(value) for value in (condition.value if isinstance(condition, In) else (condition.value,))]


def _plain(value: object) -> object:
    # A time becomes a tuple of its microseconds since 1970; no column holds times without a zone.
    if not isinstance(value, datetime) or value.tzinfo is None:
        return value
    return ((value - _EPOCH) // timedelta(microseconds=1),)
