"""`rmqfast ingest`: what is in the store is in the Parquet files, each message once, under its day and topic."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from tests import golden_stores
from tests.cli.command_line import COMMAND, run, run_process
from tests.cli.test_process import without
from tests.golden_stores import PathOf
from tests.reference.writer import Message, Options, write_store
from tests.tables.stored_rows import append

STORE = "basic-4.9.4"
#: Topics that a name server takes, and some that only a damaged or foreign store has.
ODD_TOPICS = ("%RETRY%cashiers", "a|b", "a=b:c*", "w[x]{y}^z", 'it\'s "#1"?', "back\\slash", "tab\there", "two words")


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


@pytest.fixture
def on_progress(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int, int], object]], None]:
    """Has the command tell this, not a bar, how far it is; it reads small pieces, so it tells it often."""

    def watch(told: Callable[[int, int], object]) -> None:
        monkeypatch.setattr("rmqfast.tables.store_logs.PIECE_BYTES", 1 << 18)
        monkeypatch.setattr("rmqfast.cli.ingest.bar", lambda _: nullcontext(told))

    return watch


def test_parquet_holds_every_message_once_under_its_day_and_topic(
    golden_store: PathOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rmqfast.tables.store_logs.PIECE_BYTES", 1 << 18)
    out = tmp_path / "above" / "out"
    result = run("ingest", golden_store(STORE), "--out", out, "-o", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    wanted = golden_stores.expected_rows(STORE)
    (summary,) = json.loads(result.stdout)
    assert (summary["out"], summary["rows"]) == (str(out), len(wanted))
    assert summary["bytes"] == sum(row["store_size"] for row in wanted)
    assert summary["rows_per_second"] == pytest.approx(summary["rows"] / summary["seconds"], rel=0.1)
    assert not list(golden_stores.differences(written(out), [row | {"day": day(row)} for row in wanted]))
    assert {path.name for path in out.glob("day=*/*")} == {f"topic={row['topic']}" for row in wanted}
    assert {path.name for path in out.iterdir()} - {path.name for path in out.glob("day=*")} == {"_SUCCESS", "_rmqfast"}
    schema = ds.dataset(out, format="parquet").schema
    assert not {"day", "topic"} & set(schema.names)
    assert schema.field("store_timestamp").type == pa.timestamp("us", "UTC")
    assert list(out.parent.iterdir()) == [out]


def test_topics_tags_and_times_choose_messages(golden_store: PathOf, tmp_path: Path) -> None:
    rows = [row for row in golden_stores.expected_rows(STORE) if row["topic"] in {"fx_q1", "fx_q4"}]
    tagged = [row for row in rows if row["tags"] == "Aa"]
    start, end = tagged[5]["store_timestamp"], tagged[-5]["store_timestamp"]
    options = (
        "--topic",
        "fx_q1",
        "--topic",
        "fx_q4",
        "--tags",
        "Aa",
        "--start-time",
        str(start),
        "--end-time",
        str(end),
    )
    assert run("ingest", golden_store(STORE), "--out", tmp_path / "out", *options).exit_code == 0
    wanted = [row for row in tagged if start <= row["store_timestamp"] < end]
    assert wanted
    assert not list(golden_stores.differences(written(tmp_path / "out"), wanted))


def test_a_second_run_writes_nothing_and_overwrite_begins_anew(golden_store: PathOf, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("ingest", golden_store("offsets-4.9.4"), "--out", out, "-o", "json")
    wanted = golden_stores.expected_rows("offsets-4.9.4")
    assert json.loads(run(*command).stdout)[0]["rows"] == len(wanted)
    first = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.rglob("*.parquet")}
    assert json.loads(run(*command).stdout)[0]["rows"] == 0
    assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.rglob("*.parquet")} == first
    (out / "strange").touch()
    assert run(*command, "--mode", "overwrite").exit_code == 0
    assert not list(golden_stores.differences(written(out), wanted))
    assert not (out / "strange").exists()
    refused = run(*command, "--mode", "error")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "mode resume continues it" in refused.stderr
    assert list(tmp_path.iterdir()) == [out]


def test_every_goes_on_until_it_is_stopped(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "out"
    append(store, 30)
    command = [*COMMAND, "ingest", str(store), "--out", str(out), "--every", "0.1s", "-o", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["rows"] == 30
        append(store, 12, start=30)
        told = 0
        while told < 12:
            told += json.loads(process.stdout.readline())["rows"]
        process.terminate()
        rest, errors = process.stdout.read(), process.stderr.read()
    assert (process.returncode, rest, errors, told) == (0, "", "", 12)
    assert len(written(out)) == 42
    for wrong in ("soon", "-5s", "5 m"):
        refused = run("ingest", store, "--out", out, "--every", wrong)
        assert refused.exit_code == 2
        assert "expected an interval as 60s, 5m or 1h" in refused.stderr
    assert run("ingest", store, "--out", out, "--every", "1h", "-o", "json").exit_code == 2


def test_damage_at_the_end_of_the_log_fails_the_ingest_with_one_line(golden_store: PathOf, tmp_path: Path) -> None:
    result = run("ingest", golden_store("damaged-4.9.4"), "--out", tmp_path / "out")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "commitlog/00000000000001048576 at offset 1508364, 24117 bytes" in result.stderr
    # the messages before it are written, and the next run says the same
    wanted = [row | {"day": day(row)} for row in golden_stores.expected_rows("damaged-4.9.4")]
    assert not list(golden_stores.differences(written(tmp_path / "out"), wanted))
    again = run("ingest", golden_store("damaged-4.9.4"), "--out", tmp_path / "out")
    assert (again.exit_code, again.stderr) == (1, result.stderr)


def test_what_damage_leaves_is_written_and_the_places_end_the_ingest_with_code_1(
    golden_store: PathOf, tmp_path: Path
) -> None:
    store, out = golden_store("damaged-4.9.4"), tmp_path / "out"
    result = run("ingest", store, "--out", out, "--on-damage", "warn", "-o", "json")
    wanted = golden_stores.expected_rows("damaged-4.9.4")
    assert (result.exit_code, json.loads(result.stdout)[0]["rows"]) == (1, len(wanted))
    assert not list(golden_stores.differences(written(out), [row | {"day": day(row)} for row in wanted]))
    damage, place = result.stderr.splitlines()
    assert damage == "damage in 1 place, 24,117 bytes not read"
    assert place.startswith(f"  {store}/commitlog/00000000000001048576 offset 1508364, 24117 bytes: ")


def test_the_bar_begins_at_once_and_moves_by_bytes_of_the_log(
    golden_store: PathOf, tmp_path: Path, on_progress: Callable[[Callable[[int, int], object]], None]
) -> None:
    told: list[tuple[int, int]] = []
    on_progress(lambda *at: told.append(at))
    # a tag that nothing has: there are no rows by which a bar could move
    assert run("ingest", golden_store(STORE), "--out", tmp_path / "out", "--tags", "none").exit_code == 0
    (begin, total), (end, _) = told[0], told[-1]
    assert (begin, end) == (0, total)
    assert {all_of_it for _, all_of_it in told} == {total}
    assert len(told) > 4
    assert told == sorted(told)


@pytest.mark.parametrize("mode", ["resume", "append", "overwrite"])
def test_ctrl_c_leaves_everything_as_it_was(
    golden_store: PathOf, tmp_path: Path, mode: str, on_progress: Callable[[Callable[[int, int], object]], None]
) -> None:
    if mode != "resume":
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "old.parquet").touch()
    before = sorted(tmp_path.rglob("*"))

    def interrupt(done: int, _: int) -> None:
        if done:
            signal.raise_signal(signal.SIGINT)

    on_progress(interrupt)
    result = run("ingest", golden_store(STORE), "--out", tmp_path / "out", "--mode", mode)
    assert (result.exit_code, result.output) == (130, "")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_leaves_nothing(golden_store: PathOf, tmp_path: Path) -> None:
    store = golden_store(STORE)  # whoever unpacks it first must not be limited
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))  # what a disk that is full is to the command
    try:
        result = run("ingest", store, "--out", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == f"error: {tmp_path}/out: file too large\n"
    assert list(tmp_path.iterdir()) == []


def test_odd_topics_have_directories_that_say_what_they_are(tmp_path: Path) -> None:
    topics = (*ODD_TOPICS, "ü")
    write_store(tmp_path / "store", [Message(topic, topic.encode()) for topic in topics], Options())
    assert run("ingest", tmp_path / "store", "--out", tmp_path / "out").exit_code == 0
    assert {path.name for path in (tmp_path / "out").glob("day=*/*")} >= {"topic=%25RETRY%25cashiers", "topic=a|b"}
    rows = written(tmp_path / "out")
    assert [(row["topic"], row["body"]) for row in rows] == [(topic, topic.encode()) for topic in topics]


def test_a_store_is_no_place_for_its_files(golden_store_copy: PathOf) -> None:
    store = golden_store_copy("offsets-4.9.4")
    before = sorted(store.parent.rglob("*"))
    for out, mode in ((store / "out", "error"), (store, "append"), (store, "overwrite"), (store.parent, "overwrite")):
        result = run("ingest", store, "--out", out, "--mode", mode)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert sorted(store.parent.rglob("*")) == before


@pytest.mark.parametrize(
    "options", [("--master", "local[2]"), ("--out", "s3a://lake/orders"), ("--out", "hdfs://names/orders")]
)
def test_local_refuses_what_only_spark_can_do(golden_store: PathOf, tmp_path: Path, options: tuple[str, str]) -> None:
    result = run("ingest", golden_store(STORE), "--out", tmp_path / "out", "--engine", "local", *options)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "--engine: expected auto, columnar, arrow or pandas" in result.stderr


def test_without_pyspark_files_are_written(golden_store: PathOf, tmp_path: Path) -> None:
    arguments = ("ingest", golden_store("offsets-4.9.4"), "--out", tmp_path / "out")
    assert run_process(*arguments, **without("pyspark", tmp_path)).returncode == 0
    assert written(tmp_path / "out")


@pytest.mark.spark
def test_spark_writes_where_a_master_is_given(golden_store: PathOf, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--master", "local[2]", "-o", "json")
    result = run_process("ingest", golden_store(STORE), "--out", out, *options, TZ="Asia/Shanghai")
    assert result.returncode == 0, result.stderr
    wanted = golden_stores.expected_rows(STORE)
    (summary,) = json.loads(result.stdout)
    assert (summary["out"], summary["rows"]) == (str(out), len(wanted))
    assert summary["bytes"] == sum(row["store_size"] for row in wanted)
    assert summary["rows_per_second"] == pytest.approx(summary["rows"] / summary["seconds"], abs=1)
    assert not list(golden_stores.differences(written(out), [row | {"day": day(row)} for row in wanted]))
    assert {path.name for path in out.glob("day=*/*")} == {f"topic={row['topic']}" for row in wanted}


@pytest.mark.spark
def test_damage_fails_an_ingest_of_spark_with_one_line(golden_store: PathOf, tmp_path: Path) -> None:
    options = ("--out", tmp_path / "out", "--engine", "columnar")
    result = run_process("ingest", golden_store("damaged-4.9.4"), *options)
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = [line for line in result.stderr.splitlines() if not line.startswith("WARNING: Using incubator modules")]
    assert line.startswith("error: store ")
    assert "commitlog/00000000000001048576 at offset 1508364, 24117 bytes" in line
    assert not list((tmp_path / "out").rglob("*.parquet"))


@pytest.mark.parametrize("engine", ["local", "arrow"])
def test_a_mistake_is_found_before_anything_is_written(golden_store: PathOf, tmp_path: Path, engine: str) -> None:
    store = golden_store(STORE)
    for topics in (["--topic", "fx_q"], ["--topic", "fx_q1", "--topic", "fx_q"]):
        topic = run("ingest", store, "--out", tmp_path / "out", "--engine", engine, *topics)
        assert (topic.exit_code, topic.stderr.count("\n")) == (2, 1)
        assert "did you mean fx_q1" in topic.stderr
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "file").touch()
    exists = run("ingest", store, "--out", tmp_path / "foreign", "--engine", engine)
    assert (exists.exit_code, exists.stderr.count("\n")) == (2, 1)
    assert "mode append" in exists.stderr
    assert run("ingest", tmp_path / "missing", "--out", tmp_path / "out", "--engine", engine).exit_code == 3
    assert run("ingest", store).exit_code == 2
    assert [path.name for path in tmp_path.rglob("*")] == ["foreign", "file"]


def test_decoded_bodies_are_a_column_and_bad_ones_are_told_at_the_end(tmp_path: Path) -> None:
    bodies = [b'{"id": 1, "lines": [{"n": 2}]}', b"nope", b'{"id": 3, "lines": []}', b'{"id": "x"}']
    write_store(tmp_path / "store", [Message("T", body, queue_id=n % 2) for n, body in enumerate(bodies)], Options())
    schema = tmp_path / "schema.ddl"
    schema.write_text("id bigint, lines array<struct<n: int>>")
    options = ("--decode", "json", "--schema", str(schema))
    ended = run("ingest", str(tmp_path / "store"), "--out", str(tmp_path / "out"), *options)
    assert ended.exit_code == 1
    assert "2 bodies could not be decoded" in ended.stderr
    assert "topic T queue 1 offset 0: expected a JSON object at byte 0, got 'n'" in ended.stderr
    rows = written(tmp_path / "out")
    assert [row["value"] for row in rows] == [
        {"id": 1, "lines": [{"n": 2}]},
        None,
        {"id": 3, "lines": []},
        None,
    ]
    assert [row["body"] for row in rows] == bodies
    ended = run("ingest", str(tmp_path / "store"), "--out", str(tmp_path / "none"), *options, "--on-error", "fail")
    assert ended.exit_code == 1
    assert "body of message 0 of queue 1 of topic T: expected a JSON object" in ended.stderr
    assert not list(tmp_path.glob("none*"))


def test_a_wrong_schema_is_refused_before_a_jvm_starts(golden_store: PathOf, tmp_path: Path) -> None:
    options = ("--out", str(tmp_path / "out"), "--engine", "arrow", "--decode", "json", "--schema", "id strng")
    ended = run("ingest", str(golden_store(STORE)), *options)
    assert ended.exit_code == 2
    assert "schema: expected a type" in ended.stderr
