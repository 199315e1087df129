"""Row groups have their size, and none is tiny behind others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from rmqfast.tables.row_groups import RowGroups

SCHEMA = pa.schema([("number", pa.int64())])
ROWS = 125
"""Rows of a batch, which have 1000 bytes."""


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmqfast.tables.row_groups.GROUP_BYTES", 8000)
    monkeypatch.setattr("rmqfast.tables.row_groups.REST_BYTES", 3000)


def batch(first: int, rows: int = ROWS) -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(first, first + rows), pa.int64())], schema=SCHEMA)


def grouped(directory: Path, batches: list[pa.RecordBatch], *, is_slice: bool = False) -> list[list[int]]:
    """Returns the numbers of each row group of one partition."""
    with RowGroups(SCHEMA, directory) as groups:
        full = [groups.add((), each, is_slice=is_slice) for each in batches]
        parts = [part for part in full if part is not None] + [rest for _, rest in groups.take_rest()]
        return [pa.Table.from_batches(part).column("number").to_pylist() for part in parts]


@pytest.mark.parametrize("count", range(1, 40))
def test_no_row_group_is_tiny_behind_others(tmp_path: Path, count: int) -> None:
    groups = grouped(tmp_path, [batch(number * ROWS) for number in range(count)])
    assert [number for group in groups for number in group] == list(range(count * ROWS))
    *full, last = [len(group) // ROWS for group in groups]
    assert set(full) <= {8}
    assert min(count, 3) <= last < 11


@pytest.mark.parametrize("memory", [0, 2500, 1 << 20])
@pytest.mark.parametrize("is_slice", [False, True], ids=["batches", "slices"])
def test_rows_keep_their_order_wherever_they_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: int, *, is_slice: bool
) -> None:
    monkeypatch.setattr("rmqfast.tables.row_groups.MEMORY_BYTES", memory)
    groups = grouped(tmp_path, [batch(number * ROWS) for number in range(50)], is_slice=is_slice)
    assert len(groups) > 3
    assert [number for group in groups for number in group] == list(range(50 * ROWS))


def test_nothing_waits_behind_a_batch_that_is_a_row_group_itself(tmp_path: Path) -> None:
    assert grouped(tmp_path, [batch(0, 20 * ROWS)]) == [list(range(20 * ROWS))]
