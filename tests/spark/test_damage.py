"""Bytes that a read cannot use: they end the job, or are told; a log that shrinks between plan and task as well."""

from __future__ import annotations

import logging
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from rmqfast import ScanRequest, open_store
from rmqfast.errors import CorruptError
from rmqfast.spark import read_store
from rmqfast.spark.ingest import damage_accumulator
from rmqfast.spark.partitions import StoreRead, plan_partitions
from rmqfast.spark.task import read_partition
from tests import golden_stores
from tests.golden_stores import PathOf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("engine", ["columnar", "arrow"])
def test_damage_ends_the_job_and_says_where(
    spark: SparkSession, golden_store: PathOf, engine: Literal["columnar", "arrow"]
) -> None:
    frame = read_store(spark, golden_store("damaged-4.9.4"), None, engine=engine)
    with pytest.raises(Exception, match=r"CorruptError: .*00001048576 at offset 1508364, 24117 bytes"):
        frame.count()


@pytest.mark.parametrize("engine", ["columnar", "arrow"])
def test_a_queue_that_is_gone_costs_no_row(
    spark: SparkSession, golden_store_copy: PathOf, engine: Literal["columnar", "arrow"]
) -> None:
    path = golden_store_copy("basic-4.9.4")
    rows = [row for row in golden_stores.expected_rows("basic-4.9.4") if row["topic"] == "fx_q8"]
    shutil.rmtree(path / "consumequeue/fx_q8/5")
    last = max(file for file in (path / "consumequeue/fx_q8/2").iterdir() if any(file.read_bytes()))
    last.write_bytes(bytes(last.stat().st_size))
    frame = read_store(spark, path, "fx_q8", engine=engine)
    assert frame.count() == len(rows)
    places = {(row.queue_id, row.queue_offset) for row in frame.select("queue_id", "queue_offset").collect()}
    assert places == {(row["queue_id"], row["queue_offset"]) for row in rows}
    assert frame.where("queue_id = 5 AND queue_offset >= 70").count() == 8


def test_damage_that_shall_not_end_the_job_is_logged(golden_store: PathOf, caplog: pytest.LogCaptureFixture) -> None:
    read = StoreRead(path=str(golden_store("damaged-4.9.4")), request=ScanRequest(), on_damage="warn")
    with caplog.at_level(logging.WARNING, "rmqfast.spark"):
        rows = sum(batch.num_rows for part in plan_partitions(read) for batch in read_partition(read, part))
    assert rows == len(golden_stores.expected_rows("damaged-4.9.4"))
    assert [(r.name, "at offset 1508364, 24117 bytes: total size" in r.getMessage()) for r in caplog.records] == [
        ("rmqfast.spark", True)
    ]


def test_an_accumulator_takes_each_damaged_place_once(
    spark: SparkSession, golden_store: PathOf, tmp_path: Path
) -> None:
    path, damage = golden_store("damaged-4.9.4"), damage_accumulator(spark)
    options: dict[str, Any] = {"columns": ["physical_offset"], "on_damage": "warn", "damage": damage}
    first, second = (read_store(spark, path, None, engine="arrow", **options) for _ in range(2))
    first.union(second).write.parquet(str(tmp_path / "out"))
    with warnings.catch_warnings(action="ignore"), open_store(path) as store:
        scan = store.scan()
        rows = scan.to_arrow().num_rows
    assert spark.read.parquet(str(tmp_path / "out")).count() == 2 * rows
    assert sorted(damage.value) == scan.damage != []


def test_a_sound_store_leaves_an_accumulator_empty(spark: SparkSession, golden_store: PathOf) -> None:
    damage = damage_accumulator(spark)
    assert read_store(spark, golden_store("basic-4.9.4"), None, on_damage="warn", damage=damage).count() == 2779
    assert damage.value == frozenset()


@pytest.mark.parametrize("engine", ["columnar", "arrow"])
def test_a_log_file_that_is_deleted_before_the_task_runs_ends_the_job(
    spark: SparkSession, golden_store_copy: PathOf, engine: Literal["columnar", "arrow"]
) -> None:
    path = golden_store_copy("basic-4.9.4")
    strict = read_store(spark, path, None, columns=["physical_offset"], engine=engine)
    lenient = read_store(spark, path, None, columns=["physical_offset"], on_damage="warn", engine=engine)
    (path / "commitlog" / "00000000000000000000").unlink()
    with pytest.raises(Exception, match=r"CorruptError: .* at offset 0, 1048576 bytes"):
        strict.count()
    wanted = [
        r["physical_offset"] for r in golden_stores.expected_rows("basic-4.9.4") if r["physical_offset"] >= 1 << 20
    ]
    assert sorted(row[0] for row in lenient.collect()) == wanted


def test_a_store_that_an_executor_does_not_see_is_named(spark: SparkSession, golden_store_copy: PathOf) -> None:
    path = golden_store_copy("basic-4.9.4")
    frame = read_store(spark, path, None, engine="arrow")
    shutil.rmtree(path)
    with pytest.raises(
        Exception, match=r"(?s)StoreNotFoundError.*the store must be at the same path on every executor"
    ):
        frame.count()


def test_an_offset_of_a_queue_that_has_expired_is_refused(spark: SparkSession, golden_store_copy: PathOf) -> None:
    path = golden_store_copy("basic-4.9.4")
    (path / "commitlog" / "00000000000000000000").unlink()
    with pytest.raises(CorruptError, match=r"start_offset: queue 0: offset 0 .* \d+"):
        read_store(spark, path, "fx_q1", start_offset={0: 0})
    assert 0 < read_store(spark, path, "fx_q1", start_offset={0: 0}, on_damage="warn").count() < 1259
