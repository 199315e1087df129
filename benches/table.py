"""A group's rows of a record as a Markdown table, for the documentation.

python benches/table.py benches/record/2026-11-26-0123abc.json live
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from goals import LABELS, Goal, size
from measurement import Sample, Series
from report import human

SIZES = tuple(map(size, LABELS))


def main() -> None:
    """Prints it."""
    record = json.loads(Path(sys.argv[1]).read_text())
    print("\n".join(table(record, sys.argv[2])))


def table(record: dict[str, Any], group: str) -> list[str]:
    """A line for each goal, with both sizes of bodies; goals without any figure are left out."""
    series = {name: of_record(one) for name, one in record["series"].items()}
    lines: dict[str, list[str]] = {}
    wanted: dict[str, str] = {}
    for row in record["rows"].values():
        goal = Goal(**{field.name: row[field.name] for field in fields(Goal)})
        if goal.group != group or goal.ratio(series) is None:
            continue
        title, at = parted(goal.title)
        cells = lines.setdefault(title, ["", ""])
        cells[at] = figures(goal, series)
        wanted[title] = goal.text
    head = [f"| what | wanted | {SIZES[0]} bodies | {SIZES[1]} bodies |", "|---|---|---|---|"]
    return head + [f"| {title} | {wanted[title]} | {' | '.join(cells)} |" for title, cells in lines.items()]


def parted(title: str) -> tuple[str, int]:
    """A goal's title without the size of bodies at its end, and the column of that size."""
    for at, name in enumerate(SIZES):
        if title.endswith(f", {name}"):
            return title.removesuffix(f", {name}"), at
    return title, 0


def figures(goal: Goal, series: dict[str, Series]) -> str:
    """Both sides and their ratio, or the value."""
    ours = figure(goal, series[goal.ours])
    if goal.peer is None:
        return ours
    return f"{ours} : {figure(goal, series[goal.peer])} = {goal.ratio(series):.2f}"


def figure(goal: Goal, one: Series) -> str:
    """A side's figure in the goal's unit."""
    if goal.kind == "cpu":
        return f"{one.cpu_per_row * 1e6:.2f} µs"
    if goal.kind == "value":
        value = f"{one.value:,.0f}" if one.value >= 100 else f"{one.value:.3g}"
        return f"{value} {goal.unit}".strip()
    return f"{human(one.rate)}/s" if goal.kind == "rate" else f"{human(one.seconds)} s"


def of_record(one: dict[str, Any]) -> Series:
    """A series as it was."""
    return Series(**{**one, "samples": [Sample(**sample) for sample in one["samples"]]})


if __name__ == "__main__":
    main()
