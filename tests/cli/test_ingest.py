"""`rmqfast ingest`: what is in the store is in the Parquet files, each message once, under its day and topic."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from tests import golden_stores
from tests.cli.command_line import run, run_process
from tests.golden_stores import PathOf

STORE = "basic-4.9.4"


def written(out: Path) -> list[dict[str, Any]]:
    """The rows of Parquet files, in physical order, with times in milliseconds and properties as a dict."""
    rows: list[dict[str, Any]] = ds.dataset(out, format="parquet", partitioning="hive").to_table().to_pylist()
    for row in rows:
        row["properties"] = dict(row["properties"])
        row["day"] = str(row["day"])
        for column in ("born_timestamp", "store_timestamp"):
            row[column] = round(row[column].timestamp() * 1000)
    return sorted(rows, key=lambda row: row["physical_offset"])


def day(row: dict[str, Any]) -> str:
    """The day of a row's store timestamp, in UTC."""
    return datetime.fromtimestamp(row["store_timestamp"] / 1000, UTC).date().isoformat()


@pytest.mark.spark
def test_parquet_holds_every_message_once_under_its_day_and_topic(golden_store: PathOf, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run_process("ingest", golden_store(STORE), "--out", out, "-o", "json", TZ="Asia/Shanghai")
    assert result.returncode == 0, result.stderr
    wanted = golden_stores.expected_rows(STORE)
    (summary,) = json.loads(result.stdout)
    assert (summary["out"], summary["rows"]) == (str(out), len(wanted))
    assert summary["bytes"] == sum(row["store_size"] for row in wanted)
    assert summary["rows_per_second"] == pytest.approx(summary["rows"] / summary["seconds"], abs=1)
    assert not list(golden_stores.differences(written(out), [row | {"day": day(row)} for row in wanted]))
    assert {path.name for path in out.glob("day=*/*")} == {f"topic={row['topic']}" for row in wanted}


@pytest.mark.spark
def test_damage_fails_the_ingest_with_one_line(golden_store: PathOf, tmp_path: Path) -> None:
    result = run_process("ingest", golden_store("damaged-4.9.4"), "--out", tmp_path / "out")
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("WARNING: Using incubator modules")]
    assert line.startswith("error: store ")
    assert "commitlog/00000000000001048576 at offset 1508364, 24117 bytes" in line
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_a_mistake_is_found_before_spark_starts(golden_store: PathOf, tmp_path: Path) -> None:
    store = golden_store(STORE)
    topic = run("ingest", store, "--out", tmp_path / "out", "--topic", "fx_q")
    assert (topic.exit_code, topic.stderr.count("\n")) == (2, 1)
    assert "did you mean fx_q1" in topic.stderr
    exists = run("ingest", store, "--out", tmp_path)
    assert (exists.exit_code, exists.stderr.count("\n")) == (2, 1)
    assert "--mode append" in exists.stderr
    assert run("ingest", tmp_path / "missing", "--out", tmp_path / "out").exit_code == 3
    assert run("ingest", store).exit_code == 2
