"""A page as values: what its HTML, its JSON and its CSV have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

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

    `level` is "problem", "advice", "unknown", "note", "preview" or "good".
    """

    level: str
    title: str
    text: str
    next_step: str = ""
    path: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A form around a table, in which rows are selected.

    Attributes:
        path: Page that gets the selected rows.
        name: Name of their parameter.
        columns: Columns whose values name a row, joined by colons.
        hidden: Further parameters.
        title: Key of the button.
    """

    path: str
    name: str
    columns: Sequence[str]
    hidden: Mapping[str, str]
    title: str

    def value_of(self, row: Row) -> str:
        """Returns the value that stands for a row."""
        return ":".join(str(row[column]) for column in self.columns)


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """A field of a form.

    Attributes:
        name: Its name, and the key of its label.
        value: What it holds.
        kind: "text", "number" or "choice".
        choices: The values to choose from; of a text, those that are suggested.
        is_required: Whether it must be filled.
    """

    name: str
    value: str = ""
    kind: str = "text"
    choices: Sequence[str] = ()
    is_required: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """A form of a page.

    Attributes:
        path: Page that gets the values.
        fields: Its fields.
        title: Key of its button.
        hidden: Values that are sent besides.
        is_change: Whether it changes the cluster: only then it is a POST.
        confirmed: Name that must be typed to send it.
    """

    path: str
    fields: Sequence[Field]
    title: str
    hidden: Mapping[str, str] = field(default_factory=dict)
    is_change: bool = False
    confirmed: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """A link to another page; `is_change` if that page changes the cluster."""

    title: str
    path: str
    is_change: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A text of several lines under a title, as the body of a message."""

    title: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """Values over time.

    Attributes:
        name: Key of its caption, and of its values in JSON.
        path: Address of its values alone.
        times: Times, in seconds since 1970.
        series: Values at these times, by the key of their name.
    """

    name: str
    path: str
    times: Sequence[float]
    series: Mapping[str, Sequence[float | None]]

    def to_json(self) -> dict[str, list[float | None]]:
        """Returns the times and the values."""
        return {"time": list(self.times), **{name: list(values) for name, values in self.series.items()}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows under the names of their columns.

    Attributes:
        name: Key of its caption, and of its rows in JSON.
        columns: Names of the columns, in order.
        rows: The rows.
        links: For columns whose cells lead to a page: its path, with names of columns in braces.
        choice: What to do with rows that a visitor selects; `None` if they are not selected.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Row]
    links: Mapping[str, str] = field(default_factory=dict)
    choice: Choice | None = None

    def path_of(self, column: str, row: Row) -> str | None:
        """Returns the path of the page that a cell leads to."""
        if column not in self.links or row.get(column) is None:
            return None
        return self.links[column].format_map({name: quote(str(value), safe="") for name, value in row.items()})

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
        forms: Its forms.
        links: Where to go from there.
        texts: Texts of several lines.
        charts: Values over time.
        age: Seconds since its facts were collected; `None` if the cluster was asked for them now.
        is_of_look: Whether it shows the last look at the cluster, so that it changes with the next.
        is_searchable: Whether the rows of the first table can be searched and sorted.
    """

    title: str
    subject: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    notices: Sequence[Notice] = ()
    tables: Sequence[Table] = ()
    forms: Sequence[Form] = ()
    links: Sequence[Link] = ()
    texts: Sequence[Text] = ()
    charts: Sequence[Chart] = ()
    age: float | None = None
    is_of_look: bool = False
    is_searchable: bool = True

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
            "age_seconds": None if self.age is None else round(self.age, 3),
            "facts": dict(self.facts),
            "notices": notices,
            **{chart.name: chart.to_json() for chart in self.charts},
            **{each.title: each.text for each in self.texts},
            **rows,
        }


def _text(value: object) -> str:
    return str(value).casefold()


def _order(value: object) -> tuple[int, Any]:
    """Returns a key by which values of different types can be sorted: numbers first, then texts."""
    if isinstance(value, bool | int | float):
        return 0, value
    return 1, _text(value)
