"""Filters that Spark 4.1 and newer push down, and what they leave: the same for a store and for a live topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

__all__ = ["BOUNDS", "Bounds", "PushedFilters", "Taker", "earlier", "later", "tags_of", "times_of", "values_in"]

Limits = tuple[int | None, int | None]
"""The first that is left, and the one behind the last; None for no bound."""
Bounds = Callable[[int, int], Limits]
Taker = Callable[[Any], bool]
"""Takes the value of a filter, or says that it does not."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# What a comparison leaves of whole numbers: the first, and the one behind the last. The value may lie between `low` and
# `high`, the whole numbers around it, which are the same where it is whole.
BOUNDS: dict[type[Filter], Bounds] = {
    EqualTo: lambda low, high: (high, low + 1),
    GreaterThan: lambda low, _: (low + 1, None),
    GreaterThanOrEqual: lambda _, high: (high, None),
    LessThan: lambda _, high: (None, high),
    LessThanOrEqual: lambda low, _: (None, low + 1),
}


class PushedFilters(ABC):
    """Narrows a read filter by filter; what it takes, Spark does not check again, so it takes what is exact only.

    Attributes:
        is_empty: No message can pass.

    Source: `DataSourceReader.pushFilters`.
    """

    def __init__(self) -> None:
        self.is_empty = False

    def rest_of(self, filters: Iterable[Filter]) -> Iterator[Filter]:
        """Takes filters, and yields those that stay Spark's.

        Args:
            filters: Conditions that rows must all pass.

        Source: as `PushedFilters`.
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
            return self._always_has(column)
        take = self._takers().get((column, type(condition)))
        return take is not None and take(condition.value)  # type: ignore[attr-defined]  # all these have one

    @abstractmethod
    def _always_has(self, column: str) -> bool:
        """Whether a column is never null."""

    @abstractmethod
    def _takers(self) -> Mapping[tuple[str, type[Filter]], Taker]:
        """What takes a filter of a column."""


def tags_of(tags: Iterable[Any]) -> list[str] | None:
    """Tags of which a tag expression says exactly what a filter says; None where there is none that does.

    Example:
        >>> tags_of(["A", None]), tags_of(["A || B"])
        (['A'], None)
    """
    wanted = [tag for tag in tags if tag is not None]  # IN (..., NULL) is never true by the NULL
    return wanted if all(_is_one_tag(tag) for tag in wanted) else None


def values_in(values: Iterable[Any], kind: type, before: Iterable[Any] | None) -> set[Any] | None:
    """What a filter leaves of the values that there were before; None where it has others than of a kind.

    Example:
        >>> values_in([1, 2, None], int, None), values_in([1, 2], int, [2, 3])
        ({1, 2}, {2})
    """
    wanted = {value for value in values if value is not None}
    if not all(isinstance(value, kind) for value in wanted):
        return None
    return wanted if before is None else wanted & set(before)


def times_of(value: Any, bounds: Bounds) -> Limits | None:
    """What a comparison with a time leaves, in milliseconds; None where it has no zone.

    Example:
        >>> times_of(datetime(1970, 1, 1, 0, 0, 1, 300, tzinfo=UTC), BOUNDS[GreaterThanOrEqual])
        (1001, None)
    """
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    microseconds = (value - _EPOCH) // timedelta(microseconds=1)
    # stored are whole milliseconds: between two of them, after the one is from the other
    return bounds(microseconds // 1000, -(-microseconds // 1000))


def later(before: Any, bound: int | None) -> int | None:
    """The later of two beginnings."""
    return max((b for b in (before, bound) if b is not None), default=None)


def earlier(before: Any, bound: int | None) -> int | None:
    """The earlier of two ends."""
    return min((b for b in (before, bound) if b is not None), default=None)


def _is_one_tag(tag: Any) -> bool:
    """Whether a tag expression of just this tag means just this tag."""
    return isinstance(tag, str) and tag == tag.strip() and tag not in {"", "*"} and "|" not in tag
