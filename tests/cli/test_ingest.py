"""`rmqfast ingest`: what is in the store is in the Parquet files, each message once, under its day and topic."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from tests import golden_stores
from tests.cli.command_line import run, run_on_terminal, run_process

Path_of = Callable[[str], Path]
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
def test_parquet_holds_every_message_once_under_its_day_and_topic_and_append_adds(
    golden_store: Path_of, tmp_path: Path
) -> None:
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
    append_on_terminal(golden_store(STORE), out)


def append_on_terminal(store: Path, out: Path) -> None:
    """Appends some messages again, by the other engine, and with a terminal to show progress on."""
    before = written(out)
    filters = ("--topic", "fx_q1", "--topic", "fx_q4", "--tags", "Aa", "--engine", "pandas")
    code, seen = run_on_terminal("stderr", "ingest", store, *filters, "--out", out, "--mode", "append")
    assert (code, b"writing Parquet" in seen) == (0, True), seen.decode()
    again = [row for row in before if row["topic"] in {"fx_q1", "fx_q4"} and row["tags"] == "Aa"]
    wanted = sorted(before + again, key=lambda row: row["physical_offset"])
    assert again
    assert not list(golden_stores.differences(written(out), wanted))


@pytest.mark.spark
def test_damage_fails_the_ingest_with_one_line(golden_store: Path_of, tmp_path: Path) -> None:
    result = run_process("ingest", golden_store("damaged-4.9.4"), "--out", tmp_path / "out")
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("WARNING: Using incubator modules")]
    assert line.startswith("error: store ")
    assert "commitlog/00000000000001048576 at offset 1508364, 24117 bytes" in line
    assert not list((tmp_path / "out").rglob("*.parquet"))


@pytest.mark.spark
def test_what_damage_leaves_is_written_and_the_places_end_the_ingest_with_code_1(
    golden_store: Path_of, tmp_path: Path
) -> None:
    store, out = golden_store("damaged-4.9.4"), tmp_path / "out"
    result = run_process("ingest", store, "--out", out, "--on-damage", "warn", "-o", "json")
    wanted = golden_stores.expected_rows("damaged-4.9.4")
    assert (result.returncode, json.loads(result.stdout)[0]["rows"]) == (1, len(wanted))
    assert not list(golden_stores.differences(written(out), [row | {"day": day(row)} for row in wanted]))
    said = [line for line in result.stderr.splitlines() if not line.startswith("WARNING: Using incubator modules")]
    assert said[0] == "damage in 1 place, 24,117 bytes not read"
    assert said[1].startswith(f"  {store}/commitlog/00000000000001048576 offset 1508364, 24117 bytes: ")
    assert len(said) == 2


def test_a_mistake_is_found_before_spark_starts(golden_store: Path_of, tmp_path: Path) -> None:
    store = golden_store(STORE)
    topic = run("ingest", store, "--out", tmp_path / "out", "--topic", "fx_q")
    assert (topic.exit_code, topic.stderr.count("\n")) == (2, 1)
    assert "did you mean fx_q1" in topic.stderr
    exists = run("ingest", store, "--out", tmp_path)
    assert (exists.exit_code, exists.stderr.count("\n")) == (2, 1)
    assert "--mode append" in exists.stderr
    assert run("ingest", tmp_path / "missing", "--out", tmp_path / "out").exit_code == 3
    assert run("ingest", store).exit_code == 2
