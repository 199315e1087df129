"""A row of a table: what was measured, for both sizes of bodies, and what it is held against."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from goals import LABELS, Goal
from measurement import Series
from pages.records import Record, newest
from report import human


@dataclass(frozen=True)
class Row:
    """A comparison. `{}` in a series stands for the size of bodies; a row without `what` goes on with the last one."""

    what: str
    ours: str
    against: str = ""
    peer: str = ""
    kind: str = "rate"
    unit: str = "/s"

    @property
    def labels(self) -> tuple[str, ...]:
        """The sizes of bodies that there are."""
        return LABELS if "{}" in self.ours else ("",)

    def names(self, label: str) -> list[str]:
        """The series of a size."""
        return [name.format(label) for name in (self.ours, self.peer) if name]

    @property
    def record(self) -> Record:
        """The newest that has both sizes, or one."""
        of_sizes = [self.names(label) for label in self.labels]
        return newest([name for names in of_sizes for name in names], *of_sizes)

    def figures(self, side: str) -> list[str]:
        """The figure of a side, for each size; empty where it was not measured."""
        record = self.record
        return [
            figure(record.series[side.format(label)], self.kind, self.unit) if record.has(self.names(label)) else ""
            for label in self.labels
        ]

    @property
    def cells(self) -> list[str]:
        """Our figures, what they are held against, the ratios."""
        ours, record = self.figures(self.ours), self.record
        against, ratios = self.against, ""
        if self.peer:
            against = f"{self.against}: {', '.join(filter(None, self.figures(self.peer)))}"
            pairs = [self.names(label) for label in self.labels if record.has(self.names(label))]
            ratios = ", ".join(
                short(ratio(record.series[ours], record.series[peer], self.kind), self.bounds) for ours, peer in pairs
            )
        return [*ours, *[""] * (2 - len(ours)), against, ratios]

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The goals of its series that have a bound."""
        rows = [self.record.row(self.names(label), self.kind) for label in self.labels]
        return [row for row in rows if row is not None and row["bound"] is not None]

    @property
    def bounds(self) -> set[float]:
        """The goals as numbers."""
        return {row["bound"] for row in self.asked}

    @property
    def goal(self) -> str:
        """The goal and the verdict."""
        asked = self.asked
        if not asked:
            return ""
        wanted, verdicts = (list(dict.fromkeys(row[key] for row in asked)) for key in ("wanted", "verdict"))
        if len(verdicts) > 1:
            verdicts = [row["verdict"] for row in asked]
        return f"{', '.join(wanted)}: {', '.join(verdicts)}".replace(" x", "")


def ratio(ours: Series, peer: Series, kind: str) -> float:
    """Ours to theirs: of rates more is better, of all else less."""
    if kind == "value":
        return ours.value / peer.value
    found = Goal("", "", "ours", "peer", None, kind).ratio({"ours": ours, "peer": peer})
    assert found is not None
    return found


def short(number: float, bounds: AbstractSet[float]) -> str:
    """A ratio with as many digits as it deserves, and one more where it would look like its goal."""
    text = f"{number:.0f}" if number >= 10 else f"{number:.1f}" if number >= 2 else f"{number:.2f}"
    return f"{number:.3g}" if float(text) in bounds else text


def figure(one: Series, kind: str, unit: str) -> str:
    """A side's figure with its unit."""
    if kind == "cpu":
        return f"{one.cpu_per_row * 1e6:.3g} µs"
    if kind == "time":
        return f"{one.seconds * 1e3:.3g} ms" if one.seconds < 1 else f"{one.seconds:.3g} s"
    if kind == "value":
        value = f"{one.value:,.0f}" if one.value >= 100 else f"{one.value:.3g}"
        return f"{value} {unit}".strip()
    return f"{human(one.rate)}{unit}"
