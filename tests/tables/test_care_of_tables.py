"""A table stays exact while others compact, vacuum, restore and shorten its history."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rmqfast.errors import ArgumentError, StoreIOError
from tests.tables.lakes import Lake
from tests.tables.stored_rows import append, scanned


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with 600 messages."""
    append(tmp_path / "store", 600)
    return tmp_path / "store"


@pytest.fixture
def delta(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake", "delta")


@pytest.fixture
def iceberg(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake", "iceberg")


def once(act: Callable[[], object]) -> Callable[[int, int], None]:
    """A progress callback that acts once, behind the last message and before the commit."""
    done: list[bool] = []

    def callback(position: int, total: int) -> None:
        if position == total and not done:
            done.append(True)
            act()

    return callback


def compact(lake: Lake) -> None:
    """Rewrites all files of a Delta table as few."""
    table = deltalake.DeltaTable(lake.out())
    assert table.optimize.compact()["numFilesRemoved"]


def rewrite(lake: Lake) -> None:
    """Rewrites all files of an Iceberg table, as a compaction does."""
    table = lake.catalog().load_table(lake.out())
    rows = table.scan().to_arrow()
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as snapshot:
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        for task in table.scan().plan_files():
            snapshot.delete_data_file(task.file)
        for data_file in _dataframe_to_data_files(transaction.table_metadata, rows, table.io):
            snapshot.append_data_file(data_file)


def test_a_compacted_delta_table_is_continued(store: Path, delta: Lake) -> None:
    for _ in range(3):
        delta.ingest(store)
        append(store, 100, start=600)
    compact(delta)
    assert delta.ingest(store).rows == 100
    assert delta.ingest(store).rows == 0
    assert delta.rows() == scanned(store)


def test_a_compaction_meanwhile_does_not_fail_the_commit(store: Path, delta: Lake) -> None:
    delta.ingest(store, commit_bytes=20_000)
    append(store, 100, start=600)
    assert delta.ingest(store, progress=once(lambda: compact(delta))).rows == 100
    assert delta.ingest(store).rows == 0
    assert delta.rows() == scanned(store)


def test_an_iceberg_table_that_others_rewrite_is_continued(store: Path, iceberg: Lake) -> None:
    iceberg.ingest(store, commit_bytes=20_000, partition=[])
    rewrite(iceberg)
    append(store, 100, start=600)
    assert iceberg.ingest(store, progress=once(lambda: rewrite(iceberg))).rows == 100
    assert iceberg.ingest(store).rows == 0
    assert iceberg.rows() == scanned(store)


def test_a_delta_table_without_its_old_log_is_continued(store: Path, delta: Lake) -> None:
    delta.ingest(store)
    append(store, 100, start=600)
    delta.ingest(store)
    compact(delta)
    deltalake.DeltaTable(delta.out()).create_checkpoint()
    # as a clean-up of entries that are older than the log's retention time leaves it
    for entry in sorted((delta.directory / "messages" / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()
    assert not [entry for entry in deltalake.DeltaTable(delta.out()).history() if "rmqfast.position" in entry]
    assert delta.ingest(store).rows == 0
    append(store, 100, start=700)
    assert delta.ingest(store).rows == 100
    assert delta.ingest(store).rows == 0
    assert delta.rows() == scanned(store)


def test_a_vacuumed_delta_table_is_continued(store: Path, delta: Lake) -> None:
    delta.ingest(store, commit_bytes=20_000)
    compact(delta)
    table = deltalake.DeltaTable(delta.out())
    assert table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert delta.ingest(store).rows == 0
    assert delta.rows() == scanned(store)


def test_a_restored_delta_table_gets_again_what_it_lost(store: Path, delta: Lake) -> None:
    delta.ingest(store)
    version = deltalake.DeltaTable(delta.out()).version()
    append(store, 100, start=600)
    delta.ingest(store)
    deltalake.DeltaTable(delta.out()).restore(version)
    assert len(delta.rows()) == 600
    assert delta.ingest(store).rows == 100
    assert delta.ingest(store).rows == 0
    assert delta.rows() == scanned(store)
    # to before the first commit
    deltalake.DeltaTable(delta.out()).restore(0)
    assert delta.ingest(store).rows == 700
    assert delta.rows() == scanned(store)


def test_a_delta_table_that_was_replaced_begins_anew(store: Path, delta: Lake) -> None:
    delta.ingest(store)
    table = deltalake.DeltaTable(delta.out())
    partitions = table.metadata().partition_columns
    deltalake.DeltaTable.create(delta.out(), table.schema(), mode="overwrite", partition_by=partitions)
    assert delta.ingest(store).rows == 600
    assert delta.rows() == scanned(store)


def test_a_delta_table_that_would_forget_its_position_is_refused(store: Path, delta: Lake) -> None:
    delta.ingest(store)
    properties = {"delta.setTransactionRetentionDuration": "interval 7 days"}
    deltalake.DeltaTable(delta.out()).alter.set_table_properties(properties, raise_if_not_exists=False)
    with pytest.raises(ArgumentError, match=r"expected a table without delta\.setTransactionRetentionDuration"):
        delta.ingest(store)


def test_an_iceberg_table_whose_old_snapshots_expired_is_continued(store: Path, iceberg: Lake) -> None:
    iceberg.ingest(store, partition=[])
    rewrite(iceberg)
    rewrite(iceberg)
    table = iceberg.catalog().load_table(iceberg.out())
    old = [each.snapshot_id for each in table.snapshots()][:-1]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    assert len(iceberg.catalog().load_table(iceberg.out()).snapshots()) == 1
    assert iceberg.ingest(store).rows == 0
    append(store, 100, start=600)
    assert iceberg.ingest(store).rows == 100
    assert iceberg.rows() == scanned(store)


def test_an_iceberg_table_that_was_rolled_back_gets_again_what_it_lost(store: Path, iceberg: Lake) -> None:
    iceberg.ingest(store)
    snapshot = iceberg.catalog().load_table(iceberg.out()).current_snapshot()
    assert snapshot is not None
    append(store, 100, start=600)
    iceberg.ingest(store)
    iceberg.catalog().load_table(iceberg.out()).manage_snapshots().set_current_snapshot(snapshot.snapshot_id).commit()
    assert len(iceberg.rows()) == 600
    assert iceberg.ingest(store).rows == 100
    assert iceberg.ingest(store).rows == 0
    assert iceberg.rows() == scanned(store)


def test_files_of_a_delta_table_have_exact_statistics(store: Path, delta: Lake) -> None:
    delta.ingest(store)
    table = deltalake.DeltaTable(delta.out())
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert sum(action["num_records"] for action in actions) == 600
    rows = table.to_pyarrow_table()
    for action in actions:
        own = rows.filter(pc.equal(rows["topic"], action["partition.topic"]))
        assert action["min.physical_offset"] == pc.min(own["physical_offset"]).as_py()
        assert action["max.physical_offset"] == pc.max(own["physical_offset"]).as_py()
        assert action["null_count.broker_name"] == len(own)
        low, high = pc.min(own["store_timestamp"]).as_py(), pc.max(own["store_timestamp"]).as_py()
        assert action["min.store_timestamp"] <= low
        assert high <= action["max.store_timestamp"] < high + timedelta(milliseconds=2)


def test_a_position_of_a_later_release_is_refused(store: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmqfast.tables.position._VERSION", 2)
    lake.ingest(store)
    monkeypatch.undo()
    with pytest.raises(
        ArgumentError, match="expected a position of version 1, got 2: a newer release has written to it"
    ):
        lake.ingest(store)


def test_a_directory_whose_commit_was_interrupted_is_completed(store: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", "parquet")
    lake.ingest(store)
    directory = lake.directory / "messages"
    commit: dict[str, Any] = json.loads((directory / "_rmqfast" / "commit.json").read_text())
    # killed behind the commit, before all files were moved; and with files of a commit that was never made
    for name in commit["files"][:2]:
        staged = directory / "_rmqfast" / "new" / name
        staged.parent.mkdir(parents=True)
        (directory / name).rename(staged)
    (directory / "_rmqfast" / "new" / "part-0.parquet").touch()
    assert len(lake.rows()) < 600
    assert lake.ingest(store).rows == 0
    assert lake.rows() == scanned(store)
    assert [path.name for path in (directory / "_rmqfast").iterdir()] == ["commit.json"]


def test_a_commit_whose_files_could_not_be_moved_is_completed(store: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", "parquet")
    lake.ingest(store, partition=["topic"])
    append(store, 100, topics=4, start=600)
    # stands where a directory has to be
    obstacle = lake.directory / "messages" / "topic=topic-3"
    obstacle.touch()
    with pytest.raises(StoreIOError):
        lake.ingest(store)
    obstacle.unlink()
    assert lake.ingest(store).rows == 0
    assert lake.rows() == scanned(store)
