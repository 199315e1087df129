"""A metric with its values: one for each combination of labels.

Source: the text format of Prometheus, and the data model of OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """Kind of a metric. A counter only grows while its process runs."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Sample(NamedTuple):
    """A value, and the values of the family's labels."""

    labels: tuple[str, ...]
    value: float


class Histogram(NamedTuple):
    """Numbers of events by size, and the values of the family's labels.

    `bounds` are the upper ends of the ranges, without the last range, which is open; `counts` are the numbers of events
    in each range.
    """

    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its name, kind, meaning, the names of its labels, and its values at one moment.

    Example:
        >>> Family("rmqfast_held_pulls", Kind.GAUGE, "Pulls that wait for messages.", (), [Sample((), 3)]).name
        'rmqfast_held_pulls'
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    samples: Sequence[Sample | Histogram]
