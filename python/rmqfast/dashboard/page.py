"""A page as values: what its HTML, its JSON and its CSV have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]

#: Rows of a table, and notices, on one page.
PAGE_SIZE = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """The part of a table that is asked for.

    Attributes:
        text: Only rows with this text in a cell, in any case.
        sort: Column to sort by; with `-` before it, largest first.
        page: Number of the page, from 1 on.
    """

    text: str = ""
    sort: str = ""
    page: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """Something that is wrong or unknown, or the state of things.

    `level` is "problem", "advice", "unknown" or "note".
    """

    level: str
    title: str
    text: str
    next_step: str = ""
    path: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows under the names of their columns.

    Attributes:
        name: Key of its caption, and of its rows in JSON.
        columns: Names of the columns, in order.
        rows: The rows.
        links: For columns whose cells lead to a page: the path before the cell's value.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Row]
    links: Mapping[str, str] = field(default_factory=dict)

    def select(self, query: Query) -> Selection:
        """Returns the rows that a query asks for, sorted, and how many pages there are."""
        rows, text = self.rows, query.text.casefold()
        if text:
            rows = [row for row in rows if any(text in _text(row.get(name)) for name in self.columns)]
        column = query.sort.removeprefix("-")
        if column in self.columns:
            rows = sorted(rows, key=lambda row: _order(row.get(column)), reverse=query.sort.startswith("-"))
            # Unknown values come last, in both directions.
            rows = sorted(rows, key=lambda row: row.get(column) is None)
        pages = max(1, math.ceil(len(rows) / PAGE_SIZE))
        page = min(max(1, query.page), pages)
        return Selection(
            table=self,
            rows=rows[(page - 1) * PAGE_SIZE : page * PAGE_SIZE],
            all_rows=rows,
            page=page,
            pages=pages,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """A part of a table: the rows of one page, and all rows that match."""

    table: Table
    rows: Sequence[Row]
    all_rows: Sequence[Row]
    page: int
    pages: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A page of the dashboard.

    Attributes:
        title: Key of its title.
        subject: The topic, group or cluster that it shows.
        facts: Single values.
        notices: What is wrong or unknown there.
        tables: Its tables; search, order and pages are those of the first one.
        age: Seconds since its facts were collected.
    """

    title: str
    subject: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    notices: Sequence[Notice] = ()
    tables: Sequence[Table] = ()
    age: float = 0.0

    @property
    def first_notices(self) -> Sequence[Notice]:
        """The notices that the HTML shows. JSON has all."""
        return self.notices[:PAGE_SIZE]

    def to_json(self, query: Query) -> dict[str, Any]:
        """Returns the page's values; of the first table only rows that match the query, all of them."""
        rows = {table.name: list(table.rows) for table in self.tables}
        if self.tables:
            rows[self.tables[0].name] = list(self.tables[0].select(query).all_rows)
        notices = [
            {"level": each.level, "title": each.title, "text": each.text, "next_step": each.next_step}
            for each in self.notices
        ]
        return {
            "title": self.title,
            "subject": self.subject,
            "age_seconds": round(self.age, 3),
            "facts": dict(self.facts),
            "notices": notices,
            **rows,
        }


def _text(value: object) -> str:
    return str(value).casefold()


def _order(value: object) -> tuple[int, Any]:
    """Returns a key by which values of different types can be sorted: numbers first, then texts."""
    if isinstance(value, bool | int | float):
        return 0, value
    return 1, _text(value)
