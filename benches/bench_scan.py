"""Scans to Arrow inside one process: `pytest benches/bench_scan.py --benchmark-json scan.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from data import TAG, TOPIC, Dataset
from rows import COLUMN_SETS, drain

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.parametrize("columns", list(COLUMN_SETS))
def test_scan_of_a_topic(benchmark: BenchmarkFixture, open_store: Any, dataset: Dataset, columns: str) -> None:
    assert benchmark(lambda: drain(open_store.scan(TOPIC, columns=COLUMN_SETS[columns]))) == dataset.rows


def test_scan_with_checked_bodies(benchmark: BenchmarkFixture, open_store: Any, dataset: Dataset) -> None:
    wanted = COLUMN_SETS["no_properties"]
    assert benchmark(lambda: drain(open_store.scan(TOPIC, columns=wanted, verify_crc=True))) == dataset.rows


def test_scan_of_one_tag(benchmark: BenchmarkFixture, open_store: Any, dataset: Dataset) -> None:
    assert benchmark(lambda: drain(open_store.scan(TOPIC, tags=TAG))) == dataset.tagged_rows
