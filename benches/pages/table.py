"""A table of a page in Markdown, with the records below it and the commands that make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pages.records import Record, newest
from pages.row import Row, figure

MARKS = "¹²³⁴⁵⁶⁷⁸⁹"
HEADINGS = ("what", "1 KiB bodies", "128 B bodies", "against", "ratio")


@dataclass(frozen=True)
class Table:
    """Rows, each from the newest record that has it."""

    rows: tuple[Row, ...]
    goals: bool = False

    @property
    def records(self) -> set[Record]:
        """The records that it quotes."""
        return {row.record for row in self.rows}

    @property
    def text(self) -> str:
        """The table and its records."""
        used: dict[Record, list[str]] = {}
        for row in self.rows:
            used.setdefault(row.record, []).extend(name for label in row.labels for name in row.names(label))
        marks = {record: MARKS[number] for number, record in enumerate(used)} if len(used) > 1 else {}
        headings = [*HEADINGS, *["goal"] * self.goals, *["record"] * bool(marks)]
        lines, before, what = [], None, ""
        for row in self.rows:
            what, cells = row.what or what, row.cells
            if (same := (what, row.ours, row.kind, row.record)) == before:
                cells[:2] = ["", ""]
            first = "" if same == before else what
            lines.append([first, *cells, *[row.goal] * self.goals, *[marks.get(row.record, "")] * bool(marks)])
            before = same
        return "\n\n".join([markdown(headings, lines), *(sized(*each, marks) for each in used.items())])


@dataclass(frozen=True)
class Grid:
    """Values of one record, by row and column; the name of a series is empty where there is none."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]  # what, unit, series

    @property
    def names(self) -> list[str]:
        """The series that have a value."""
        return [name for *_, series in self.rows for name in series if name]

    @property
    def records(self) -> set[Record]:
        """The record that it quotes."""
        return {newest(self.names)}

    @property
    def text(self) -> str:
        """The table and its record."""
        names = self.names
        record = newest(names)
        lines = [
            [what, *(figure(record.series[name], "value", unit) if name else "" for name in series)]
            for what, unit, series in self.rows
        ]
        return f"{markdown(['what', *self.headings], lines)}\n\n{source(record, names, {})}."


def markdown(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Rows of cells as a table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [headings, ["---"] * len(headings), *lines])


def sized(record: Record, names: Sequence[str], marks: dict[Record, str]) -> str:
    """A record, and of how much it is."""
    return f"{source(record, names, marks)}, {record.sizes(names)}."


def source(record: Record, names: Sequence[str], marks: dict[Record, str]) -> str:
    """A record, what makes it, how often it was measured and on what."""
    command = f"`{record.command(names)}`"
    if record.groups(names) == {"live"} and "live_seconds" not in record.about:
        command = "the group `live` as it was then"
    name = f"{marks[record]} `{record.name}`" if marks else f"Record `{record.name}`"
    return f"{name}: {command}, {record.conditions(names)}"
