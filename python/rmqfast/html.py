"""HTML tables for `_repr_html_`. Values are escaped, and nothing is loaded from other places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice

from rmqfast.cells import one_line, table_cell

__all__ = ["facts", "table"]

#: Maximum rows of a table; further rows are only counted.
MOST_ROWS = 20


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, caption: str = "", count: int = -1) -> str:
    """Returns an HTML table of the first rows."""
    heads = "".join(f"<th>{_text(column)}</th>" for column in columns)
    body = "".join(_row(map(table_cell, columns, row)) for row in islice(rows, MOST_ROWS))
    more = max(count, len(rows)) - min(len(rows), MOST_ROWS)
    if more > 0:
        body += f'<tr><td colspan="{len(columns)}">and {more:,} more</td></tr>'
    return f"<table>{_caption(caption)}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def facts(title: str, values: Mapping[str, object]) -> str:
    """Returns an HTML table with one row for each name and its value."""
    rows = "".join(
        f"<tr><th>{_text(name.replace('_', ' '))}</th><td>{_text(table_cell(name, value))}</td></tr>"
        for name, value in values.items()
    )
    return f"<table>{_caption(title)}<tbody>{rows}</tbody></table>"


def _caption(text: str) -> str:
    return f"<caption>{_text(text)}</caption>" if text else ""


def _row(cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>"


def _text(text: str) -> str:
    return escape(one_line(text))
