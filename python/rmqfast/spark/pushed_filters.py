"""Filters that Spark 4.1 and newer push down: which are taken `rust/spark` says, the same for each source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
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

__all__ = ["rest_of"]

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


def rest_of(
    take: Callable[[list[tuple[str, str, list[object]]]], list[bool]], filters: Iterable[Filter]
) -> list[Filter]:
    """Narrows a read by filters; gives those that stay Spark's.

    Args:
        take: Gets kind, column and values of filters; tells which the read does itself.
        filters: Conditions that rows must all pass.

    Source: `DataSourceReader.pushFilters`.
    """
    all_of_them = list(filters)
    # by exact class, and of whole columns: a subclass or a field of a struct may mean something else
    asked = [f for f in all_of_them if type(f) in _KINDS and len(getattr(f, "attribute", ())) == 1]
    is_taken = take([(_KINDS[type(f)], f.attribute[0], _values(f)) for f in asked])  # type: ignore[attr-defined]
    taken = {id(f) for f, is_gone in zip(asked, is_taken, strict=True) if is_gone}
    return [f for f in all_of_them if id(f) not in taken]


def _values(condition: Any) -> list[object]:
    if isinstance(condition, IsNotNull):
        return []
    return [_plain(value) for value in (condition.value if isinstance(condition, In) else (condition.value,))]


def _plain(value: object) -> object:
    """A time as its microseconds; one without a zone is none that a column has."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return value
    return ((value - _EPOCH) // timedelta(microseconds=1),)
