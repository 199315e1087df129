"""Repeated timings of several engines, taken in turns so that a slow minute hits all of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from data import warm
from machine import ForeignLoad
from peer import Answer, Failed, Missing


@dataclass(frozen=True)
class Sample:
    """One timing."""

    seconds: float
    rows: int
    foreign_cores: float
    cpu_seconds: float | None = None
    value: float | None = None  # what is no time: bytes of memory


@dataclass
class Series:
    """The timings of one engine on one task, or why there are none."""

    name: str
    samples: list[Sample] = field(default_factory=list)
    missing: str | None = None
    failed: bool = False

    @property
    def seconds(self) -> float:
        """Median seconds."""
        return statistics.median(sample.seconds for sample in self.samples)

    @property
    def rate(self) -> float:
        """Median rows per second."""
        return statistics.median(sample.rows / sample.seconds for sample in self.samples)

    @property
    def cpu_per_row(self) -> float:
        """Median CPU seconds for a row."""
        return statistics.median((sample.cpu_seconds or 0.0) / sample.rows for sample in self.samples)

    @property
    def value(self) -> float:
        """Median of a figure that is no time."""
        return statistics.median(sample.value for sample in self.samples if sample.value is not None)

    @property
    def foreign_cores(self) -> float:
        """Median of the cores that others kept busy."""
        return statistics.median(sample.foreign_cores for sample in self.samples)


Variants = dict[str, Callable[[], Answer]]


@dataclass(frozen=True)
class Effort:
    """The number of timings for each engine, and of warm-up runs."""

    repeat: int
    warm_ups: int


def interleave(variants: Variants, effort: Effort, files: Sequence[Path]) -> list[Series]:
    """Times every variant once per round; the files are read before each round, so that all find a warm cache."""
    series = {name: Series(name) for name in variants}
    for round_ in range(effort.warm_ups + effort.repeat):
        warm(*files)
        for name, run in variants.items():
            if series[name].missing is None:
                take(series[name], run, counts=round_ >= effort.warm_ups)
    return list(series.values())


def take(series: Series, run: Callable[[], Answer], *, counts: bool = True) -> None:
    """Adds one timing to a series, or closes the series with the reason why there is none."""
    try:
        with ForeignLoad() as load:
            answer = run()
    except (Missing, Failed, OSError) as error:
        series.missing, series.failed = str(error), not isinstance(error, Missing)
        series.samples.clear()
        return
    if counts:
        cpu = answer.get("cpu_seconds", load.own_seconds)  # of all descendants, where a child does not say its own
        figures = (answer["seconds"], answer["rows"], load.cores, cpu, answer.get("value"))
        series.samples.append(Sample(*figures))


def unmeasured(name: str, error: Exception) -> Series:
    """A series that has a reason instead of timings."""
    return Series(name, missing=str(error), failed=not isinstance(error, Missing))


def checked(answer: Answer, **expected: int) -> Answer:
    """The answer, if it says what every engine must find; a fast wrong answer is no figure."""
    for name, wanted in expected.items():
        if answer.get(name) != wanted:
            raise Failed(f"wrong answer: expected {name} {wanted}, got {answer.get(name)}")
    return answer
