"""The one table of ratios, and its record as JSON with the machine and the commit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from goals import Goal
from measurement import Series

RECORD = Path(__file__).parent / "record"
SAME = ("quick", "repeat", "datasets", "live", "live_seconds")  # what two runs must share to stand in one record
COLOURS = {"met": "green", "missed": "red", "not measured": "yellow", "failed": "red"}


@dataclass(frozen=True)
class Row:
    """One goal with what was measured for it."""

    goal: Goal
    ratio: float | None
    verdict: str
    ours: Series | None
    peer: Series | None


def rows(goals: Sequence[Goal], found: Mapping[str, Series], *, judge: bool) -> list[Row]:
    """The goals held against the figures, unless they are not to be judged; what was not measured has no ratio."""
    made = [row(goal, found, judge=judge) for goal in goals]
    met = {one.goal.either for one in made if one.verdict == "met"} - {""}
    return [
        Row(one.goal, one.ratio, "met by the other", one.ours, one.peer)
        if one.verdict == "missed" and one.goal.either in met
        else one
        for one in made
    ]


def row(goal: Goal, found: Mapping[str, Series], *, judge: bool) -> Row:
    """One goal by itself."""
    ours, peer = found.get(goal.ours), found.get(goal.peer or "")
    ratio = goal.ratio(found)
    if ratio is None:
        verdict = "failed" if any(one and one.failed for one in (ours, peer)) else "not measured"
    elif goal.bound is None:
        verdict = "information"
    elif not judge:
        verdict = "not judged"
    else:
        verdict = "met" if goal.holds(ratio) else "missed"
    return Row(goal, ratio, verdict, ours, peer)


def show(console: Console, made: Sequence[Row], found: Mapping[str, Series], title: str, caption: str) -> None:
    """Prints the table and, below it, why something was not measured."""
    table = Table(title=title, caption=caption, caption_justify="left", title_justify="left")
    for heading in ("goal", "wanted", "measured", "ours", "peer", "foreign cores", "verdict"):
        table.add_column(heading, justify="right" if heading in ("wanted", "measured") else "left", overflow="fold")
    for one in made:
        cells = [
            one.goal.title,
            one.goal.text,
            ratio_text(one),
            figure(one.ours),
            figure(one.peer),
            foreign(one),
        ]
        colour = COLOURS.get(one.verdict, "default")
        table.add_row(*cells, f"[{colour}]{one.verdict}[/]")
    console.print(table)
    for (word, reason), names in reasons(found.values()).items():
        console.print(f"{word}: {', '.join(names)}: {reason}", markup=False, soft_wrap=True)


def ratio_text(one: Row) -> str:
    """The measured ratio or value with its unit."""
    if one.ratio is None:
        return "not measured"
    return f"{human(one.ratio)} {one.goal.unit}" if one.goal.peer is None else f"{one.ratio:.2f} x"


def figure(series: Series | None) -> str:
    """The absolute figure of one side: rows per second and the median time."""
    if series is None or not series.samples:
        return "-"
    return f"{human(series.rate)}/s ({series.seconds:.3g} s)"


def foreign(one: Row) -> str:
    """The most that others took of the machine, as a median, on either side."""
    loads = [series.foreign_cores for series in (one.ours, one.peer) if series and series.samples]
    return f"{max(loads):.2f}" if loads else "-"


def human(number: float) -> str:
    """A number with three digits and k, M or G."""
    for unit, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= factor:
            return f"{number / factor:.3g} {unit}"
    return f"{number:.3g}"


def reasons(found: Iterable[Series]) -> dict[tuple[str, str], list[str]]:
    """Why figures lack, with the names of those that do."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for series in found:
        if series.missing is not None:
            word = "failed" if series.failed else "not measured"
            lacking.setdefault((word, series.missing), []).append(series.name)
    return lacking


def write(made: Sequence[Row], found: Mapping[str, Series], about: Mapping[str, Any], directory: Path) -> Path:
    """Writes the record of the day and commit, into which a run of other groups with the same data is merged."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{datetime.now(UTC).date().isoformat()}-{about['commit']}.json"
    lines = {
        one.goal.title: {**asdict(one.goal), "wanted": one.goal.text, "ratio": one.ratio, "verdict": one.verdict}
        for one in made
    }
    series = {name: asdict(one) for name, one in found.items()}
    if path.exists() and all((earlier := json.loads(path.read_text())).get(name) == about[name] for name in SAME):
        lines, series = {**earlier["rows"], **lines}, {**earlier["series"], **series}
    path.write_text(json.dumps({**about, "rows": lines, "series": series}, indent=1) + "\n")
    return path
