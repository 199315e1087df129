"""Metrics as Prometheus reads them: by its own parser."""

from __future__ import annotations

from typing import Any, cast
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


def samples_of(text: str) -> dict[str, dict[Labels, float]]:
    """The values of each metric, by its labels."""
    found: dict[str, dict[Labels, float]] = {}
    for family in cast("Any", text_string_to_metric_families(text)):
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            assert labels not in found.setdefault(sample.name, {}), f"{sample.name} twice with {sample.labels}"
            found[sample.name][labels] = sample.value
    return found


def scrape(address: str | None) -> dict[str, dict[Labels, float]]:
    with urlopen(f"http://{address}/metrics", timeout=30) as answer:
        return samples_of(answer.read().decode())


def value(found: dict[str, dict[Labels, float]], name: str, **labels: str) -> float | None:
    """The one value of a metric whose labels have these values; None if there is none."""
    wanted = set(labels.items())
    values = [each for known, each in found.get(name, {}).items() if wanted <= known]
    assert len(values) <= 1, f"{name}: {values}"
    return values[0] if values else None
