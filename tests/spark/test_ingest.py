"""`rmqfast ingest` in a session that is there: what was written stays, damage is left out and told."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from tests import golden_stores
from tests.cli.command_line import run
from tests.cli.test_ingest import ODD_TOPICS, STORE, day, written
from tests.golden_stores import PathOf
from tests.reference.writer import Message, Options, write_store
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line takes this session for its own."""
    monkeypatch.setattr("rmqfast.spark.session.session", lambda *_, **__: nullcontext(spark))


def test_append_adds_messages_of_some_topics_and_tags(golden_store: PathOf, tmp_path: Path) -> None:
    filters = ("--topic", "fx_q1", "--topic", "fx_q4", "--tags", "Aa")
    for engine in ("pandas", "arrow"):
        more = ("--out", tmp_path / "out", "--mode", "append", "--engine", engine)
        assert run("ingest", golden_store(STORE), *filters, *more).exit_code == 0
    wanted = [r for r in golden_stores.expected_rows(STORE) if r["topic"] in {"fx_q1", "fx_q4"} and r["tags"] == "Aa"]
    assert wanted
    twice = sorted(wanted + wanted, key=lambda row: row["physical_offset"])
    assert not list(golden_stores.differences(written(tmp_path / "out"), twice))


def test_what_damage_leaves_is_written_and_the_places_end_the_ingest_with_code_1(
    golden_store: PathOf, tmp_path: Path
) -> None:
    store, out = golden_store("damaged-4.9.4"), tmp_path / "out"
    result = run("ingest", store, "--out", out, "--engine", "columnar", "--on-damage", "warn", "-o", "json")
    wanted = golden_stores.expected_rows("damaged-4.9.4")
    assert (result.exit_code, json.loads(result.stdout)[0]["rows"]) == (1, len(wanted))
    assert not list(golden_stores.differences(written(out), [row | {"day": day(row)} for row in wanted]))
    damage, place = result.stderr.splitlines()
    assert damage == "damage in 1 place, 24,117 bytes not read"
    assert place.startswith(f"  {store}/commitlog/00000000000001048576 offset 1508364, 24117 bytes: ")


def test_spark_and_this_process_write_the_same(spark: SparkSession, golden_store: PathOf, tmp_path: Path) -> None:
    odd = write_store(tmp_path / "odd", [Message(topic, b"body") for topic in ODD_TOPICS], Options()).path
    for number, store in enumerate((golden_store(STORE), odd)):
        outs = {engine: tmp_path / f"{engine}-{number}" for engine in ("arrow", "local")}
        for engine, out in outs.items():
            assert run("ingest", store, "--out", out, "--engine", engine).exit_code == 0
        by_spark, here = (spark.read.parquet(str(out)) for out in outs.values())
        assert here.schema == by_spark.schema
        rows = [sorted(frame.collect(), key=lambda row: row["physical_offset"]) for frame in (by_spark, here)]
        assert rows[0]
        assert rows[1] == rows[0]
        names = [{str(path.relative_to(out)) for path in out.glob("day=*/*")} for out in outs.values()]
        assert names[1] == names[0]
        assert [(out / "_SUCCESS").stat().st_size for out in outs.values()] == [0, 0]


def test_a_bar_is_told_of_the_progress(
    spark: SparkSession, golden_store: PathOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def tell(done: int, total: int) -> None:
        if 0 < done < total and not is_told.is_set():
            is_told.set()
            gate.write_bytes(b"")
        told.append((done, total))

    is_told = Event()
    monkeypatch.setattr("rmqfast.cli.ingest.bar", lambda _: nullcontext(tell))
    monkeypatch.setattr("rmqfast.spark.ingest.POLL_SECONDS", 0.001)
    monkeypatch.setattr("rmqfast.spark.ingest.TASK_BYTES", 1 << 20)  # a store of 3 MiB
    # The bar is of all that the session does: of a job beside, one task waits until the bar was told of the other.
    beside = Thread(target=spark.sparkContext.parallelize([0, 1], 2).foreach, args=(lambda n: n and gate.read_bytes(),))
    beside.start()
    try:
        until(lambda: completed_tasks(spark) == 1, "a task is done")
        run("ingest", golden_store(STORE), "--out", tmp_path / "out", "--engine", "columnar")
    finally:
        if not is_told.is_set():
            gate.write_bytes(b"")
        beside.join()
    assert is_told.is_set()
    assert all(0 <= done <= total for done, total in told)
    assert told[-1][1] > 2, "the tasks of the ingest count, too"


def completed_tasks(spark: SparkSession) -> int:
    """Those of stages that are not over."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)
