"""Appends inside one process: `pytest benches/bench_append.py --benchmark-json append.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data import TOPIC, Dataset
from rows import rmqfast, to_send

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

ROUNDS = 5


def test_append_many_into_a_new_store(benchmark: BenchmarkFixture, dataset: Dataset, tmp_path: Path) -> None:
    batches = to_send(dataset)
    opened: list[Any] = []

    def fresh_store() -> tuple[tuple[Any], dict[str, Any]]:
        if opened:
            opened.pop().close()
        opened.append(rmqfast().open_store(tmp_path / str(len(list(tmp_path.iterdir()))), mode="a", flush="async"))
        return (opened[0],), {}

    def append(store: Any) -> None:
        for batch in batches:
            store.append_many(batch)

    benchmark.pedantic(append, setup=fresh_store, rounds=ROUNDS, warmup_rounds=1)  # type: ignore[no-untyped-call]
    with opened.pop() as store:
        assert sum(end - begin for begin, end in store.topics()[TOPIC].values()) == dataset.rows
