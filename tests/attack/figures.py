"""The figures of an attack, and their table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from tests.broker.interop.cluster import Cluster
from tests.broker.live_server import own_memory

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Figure:
    """One number.

    Attributes:
        what: What was measured.
        value: The number.
        unit: Its unit, as `ms`.
        most: What it may be at most.
        is_time: It says how fast the machine is, too: a test does not judge by it.
    """

    what: str
    value: float
    unit: str
    most: float
    is_time: bool = True

    @property
    def is_met(self) -> bool:
        """Whether it is within its goal."""
        return self.value <= self.most

    def row(self) -> tuple[str, str, str, str]:
        verdict = "met" if self.is_met else "NOT MET"
        return self.what, f"{self.value:,.4g} {self.unit}", f"<= {self.most:,g}", verdict


@dataclass(frozen=True, slots=True)
class Scale:
    """The amount of work.

    Attributes:
        groups: Groups, and as many topics of their retries.
        topics: Topics.
        offsets: Groups that one connection commits offsets for.
        queues: Queues with one message each.
        connections: Connections that send no frame.
        pause: Seconds for which a broker stands still.
    """

    groups: int
    topics: int
    offsets: int
    queues: int
    connections: int
    pause: int


FULL = Scale(groups=10_000, topics=50_000, offsets=320_000, queues=10_000, connections=10_000, pause=60)
SHORT = Scale(groups=1_000, topics=500, offsets=12_000, queues=300, connections=500, pause=1)


def median_ms(work: Callable[[int], object], count: int) -> float:
    """The median of so many calls, each with its number, in milliseconds."""
    return statistics.median(milliseconds(partial(work, number)) for number in range(count))


def milliseconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def memory(cluster: Cluster) -> float:
    """MiB of memory of the broker's own; pages of files are not counted."""
    return own_memory(cluster.pid) / MIB


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Lines with columns of equal width; the first row is their names."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def rows_of(attack: str, figures: Iterable[Figure]) -> list[tuple[str, ...]]:
    """The rows of an attack."""
    return [(attack, *figure.row()) for figure in figures]
