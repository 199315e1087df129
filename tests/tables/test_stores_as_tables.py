"""A table has each message of a store once, however often and in whatever steps it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rmqfast.errors import (
    ArgumentError,
    CorruptError,
    DataLossError,
    RmqError,
    StoreBusyError,
    TableConflictError,
    UnknownTopicError,
)
from rmqfast.tables import ingest
from tests import golden_stores
from tests.golden_stores import PathOf
from tests.reference.writer import Message as RawMessage
from tests.reference.writer import Options, write_store
from tests.tables.lakes import Lake
from tests.tables.stored_rows import append, scanned


@pytest.mark.filterwarnings("ignore::rmqfast.DamageWarning")
@pytest.mark.parametrize("name", golden_stores.NAMES)
def test_a_table_has_the_rows_of_a_scan(golden_store: PathOf, lake: Lake, name: str) -> None:
    store = golden_store(name)
    wanted = scanned(store)
    written = lake.ingest(store, on_damage="warn")
    assert (written.rows, written.bytes) == (len(wanted), sum(row["store_size"] for row in wanted))
    assert lake.rows() == wanted


def test_times_that_no_date_can_be_are_rows_as_others(tmp_path: Path, lake: Lake) -> None:
    times = (1_700_000_000_001, 300_000_000_000_000, -1, 0)  # the second is in the year 11476
    store = tmp_path / "store"
    write_store(store, [RawMessage("T", b"x")] * 4, Options())
    (log,) = (store / "commitlog").iterdir()
    with log.open("r+b") as file:
        for row, time in zip(scanned(store), times, strict=True):
            # no checksum covers the store time of a record
            file.seek(row["physical_offset"] + 56)
            file.write(time.to_bytes(8, "big", signed=True))
    assert lake.ingest(store).rows == 4
    stored = lake.read().column("store_timestamp").cast(pa.int64()).to_pylist()
    assert sorted(stored) == sorted(time * 1000 for time in times)
    if lake.format != "parquet":
        assert lake.ingest(store).rows == 0


def test_columns_have_the_types_of_spark(golden_store: PathOf, lake: Lake) -> None:
    lake.ingest(golden_store("basic-4.9.4"))
    schema = lake.read().schema
    types = {name: str(schema.field(name).type).replace("large_", "") for name in schema.names}
    assert types["store_timestamp"] == "timestamp[us, tz=UTC]"
    assert types["queue_id"] == "int32"
    assert types["queue_offset"] == "int64"
    assert types["body"] == "binary"
    assert types["properties"].startswith("map<string, string")
    assert types["msg_id"] == "string"


def test_each_run_writes_what_is_new(tmp_path: Path, lake: Lake) -> None:
    store = tmp_path / "store"
    append(store, 300)
    assert lake.ingest(store).rows == 300
    again = lake.ingest(store)
    assert (again.rows, again.commits, again.files) == (0, 0, 0)
    append(store, 200, topics=4, start=300)
    assert lake.ingest(store).rows == 200
    assert lake.ingest(store).rows == 0
    assert lake.rows() == scanned(store)


def test_steps_are_commits(tmp_path: Path, lake: Lake) -> None:
    store = tmp_path / "store"
    append(store, 3000)
    written = lake.ingest(store, commit_bytes=100_000)
    assert written.rows == 3000
    assert written.commits > 3
    assert lake.rows() == scanned(store)


def test_a_table_can_have_some_topics_tags_and_times(tmp_path: Path, lake: Lake) -> None:
    store = tmp_path / "store"
    append(store, 900)
    times = sorted(row["store_timestamp"] for row in scanned(store))
    chosen = {"tags": ["a"], "start_time": times[100], "end_time": times[-100]}
    wanted = scanned(store, ["topic-0", "topic-2"], **chosen)
    assert lake.ingest(store, ["topic-2", "topic-0"], **chosen).rows == len(wanted)
    assert lake.rows() == wanted
    for other in (
        {"topics": ["topic-0"], **chosen},
        {"topics": None, **chosen},
        {"topics": ["topic-0", "topic-2"], **chosen, "tags": "*"},
        {"topics": ["topic-0", "topic-2"], **chosen, "end_time": None},
    ):
        with pytest.raises(ArgumentError, match="was begun"):
            lake.ingest(store, **other)
    expected = r"tags: expected 'a', with which .* was begun, got '\*'; write these messages to another table"
    with pytest.raises(ArgumentError, match=expected):
        lake.ingest(store, ["topic-0", "topic-2"], **chosen | {"tags": "*"})
    assert lake.rows() == wanted
    with pytest.raises(UnknownTopicError):
        lake.ingest(store, ["topic"], table="other")


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_a_table_is_not_written_into_its_store(tmp_path: Path, form: Any) -> None:
    store = tmp_path / "store"
    append(store, 10)
    before = sorted(store.rglob("*"))
    with pytest.raises(ArgumentError, match="out: expected a path outside of the store"):
        ingest(store, store / "lake", format=form)
    assert sorted(store.rglob("*")) == before


@pytest.mark.parametrize(
    ("out", "options", "message"),
    [
        ("messages", {}, "out: expected namespace.table for Iceberg, got 'messages'"),
        ("db.messages", {"uri": ""}, "catalog: expected one that pyiceberg can load, got 'nowhere'"),
        ("db.messages", {"uri": "sqlite:////nowhere/catalog.db"}, r"db\.messages: .* unable to open database file"),
        ("db.messages", {"type": "rest", "uri": "http://127.0.0.1:1"}, r"db\.messages"),
        ("db.messages", {"warehouse": ""}, r"db\.messages: No default path is set"),
        ("a.b.messages", {}, r"a\.b\.messages: .*hierarchical namespaces are not supported"),
    ],
)
def test_a_catalog_that_refuses_is_one_error(tmp_path: Path, out: str, options: dict[str, str], message: str) -> None:
    append(tmp_path / "store", 10)
    given = {name: value for name, value in (Lake(tmp_path / "lake", "iceberg").options | options).items() if value}
    if not given.get("uri"):
        del given["type"]
    with pytest.raises(RmqError, match=message):
        ingest(tmp_path / "store", out, format="iceberg", catalog="nowhere", options=given)


def test_a_storage_that_deltalake_does_not_know_is_one_error(tmp_path: Path) -> None:
    append(tmp_path / "store", 10)
    with pytest.raises(RmqError, match="gopher://host/messages: Unknown scheme: gopher"):
        ingest(tmp_path / "store", "gopher://host/messages", format="delta")


@pytest.mark.parametrize("partition", [[], ["topic"], ["tags", "queue_id"], ["day", "topic", "queue_id"]], ids="-".join)
def test_partitions_are_as_asked(tmp_path: Path, lake: Lake, partition: list[str]) -> None:
    store = tmp_path / "store"
    append(store, 400)
    lake.ingest(store, partition=partition)
    assert lake.rows() == scanned(store)
    # the second run keeps the table's partitions
    append(store, 10, start=400)
    assert lake.ingest(store).rows == 10
    if lake.format == "iceberg":
        fields = lake.catalog().load_table(lake.out()).spec().fields
        assert [field.name for field in fields] == partition


def test_rows_that_exceed_the_memory_wait_in_a_file(
    tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rmqfast.tables.row_groups.MEMORY_BYTES", 20_000)
    monkeypatch.setattr("rmqfast.tables.row_groups.GROUP_BYTES", 20_000)
    monkeypatch.setattr("rmqfast.tables.row_groups.REST_BYTES", 10_000)
    monkeypatch.setattr("rmqfast.tables.store_logs.PIECE_BYTES", 20_000)
    store = tmp_path / "store"
    append(store, 3000, topics=20)
    written = lake.ingest(store)
    assert lake.rows() == scanned(store)
    assert written.files >= 20


def test_messages_of_others_make_no_commits_of_their_own(tmp_path: Path, lake: Lake) -> None:
    store = tmp_path / "store"
    append(store, 300)
    assert lake.ingest(store, ["topic-1"]).commits == 1
    for start in range(300, 900, 300):
        append(store, 300, topics=1, start=start)
        assert lake.ingest(store, ["topic-1"]).commits == 0
    # but they are not read again for ever
    assert lake.ingest(store, ["topic-1"], commit_bytes=100_000).commits == 1
    append(store, 300, start=900)
    written = lake.ingest(store, ["topic-1"], commit_bytes=1 << 20)
    assert (written.rows, written.commits) == (100, 1)
    assert lake.rows() == scanned(store, ["topic-1"])


def test_another_ingest_meanwhile_fails_the_commit(tmp_path: Path, lake: Lake) -> None:
    store = tmp_path / "store"
    append(store, 500)
    lake.ingest(store)
    append(store, 500, start=500)
    others: list[int] = []

    def interfere(done: int, total: int) -> None:
        if done == total and not others:
            others.append(0)
            others[0] = lake.ingest(store).rows

    expected = StoreBusyError if lake.format == "parquet" else TableConflictError
    with pytest.raises(expected, match=r"another (process writes|ingest has written) to it"):
        lake.ingest(store, progress=interfere)
    if lake.format == "parquet":
        assert lake.ingest(store).rows == 500
    else:
        assert others == [500]
    assert lake.rows() == scanned(store)


def test_a_table_of_others_is_only_written_if_asked(tmp_path: Path, lake: Lake) -> None:
    store = tmp_path / "store"
    append(store, 100)
    lake.ingest(store)
    _forget_position(lake)
    with pytest.raises(ArgumentError, match="which others have written; mode append adds to it nevertheless"):
        lake.ingest(store)
    with pytest.raises(ArgumentError, match="expected no table yet"):
        lake.ingest(store, mode="error")
    assert lake.ingest(store, mode="append").rows == 100
    assert len(lake.rows()) == 200
    # from then on it is continued
    assert lake.ingest(store).rows == 0
    assert lake.ingest(store, mode="append").rows == 0


def _forget_position(lake: Lake) -> None:
    """Makes the table one that another program has written."""
    if lake.format == "parquet":
        for path in (lake.directory / "messages" / "_rmqfast").iterdir():
            path.unlink()
        return
    rows = lake.read()
    if lake.format == "delta":
        import deltalake

        partitions = deltalake.DeltaTable(lake.out()).metadata().partition_columns
        deltalake.write_deltalake(lake.directory / "new", rows, partition_by=partitions)
        (lake.directory / "messages").rename(lake.directory / "old")
        (lake.directory / "new").rename(lake.directory / "messages")
    else:
        catalog = lake.catalog()
        table = catalog.load_table(lake.out())
        catalog.drop_table(lake.out())
        catalog.create_table(lake.out(), schema=table.schema()).append(rows)


def test_a_log_that_was_replaced_or_has_expired_is_told(tmp_path: Path, lake: Lake) -> None:
    store, other = tmp_path / "store", tmp_path / "other"
    append(store, 2000)
    lake.ingest(store)
    append(other, 100)
    with pytest.raises(ArgumentError, match=r"before the table's position \d+: .*; write to another table"):
        lake.ingest(other)
    for path in sorted((store / "commitlog").iterdir())[:-1]:
        path.unlink()
    append(store, 1000, start=2000)
    files = sorted((store / "commitlog").iterdir())
    files[0].unlink()
    with pytest.raises((CorruptError, DataLossError), match="the log held this"):
        lake.ingest(store)
    written = lake.ingest(store, on_damage="warn")
    assert 0 < written.rows < 1000
    assert written.damage


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "orc"}, "format: expected parquet, delta, iceberg, got 'orc'"),
        ({"mode": "replace"}, "mode: expected resume, error, append, overwrite, got 'replace'"),
        ({"compression": "brotli"}, "compression: expected snappy, zstd, lz4, gzip, none, got 'brotli'"),
        ({"partition": ["hour"]}, "partition: expected some of day, topic, .*, got 'hour'"),
        ({"partition": "day"}, "partition: expected a list of names, each once, got 'day'"),
        ({"partition": ["day", "day"]}, "partition: expected a list of names, each once"),
        ({"on_damage": "skip"}, "on_damage: expected fail, warn, got 'skip'"),
        ({"format": "delta", "mode": "overwrite"}, "mode: expected resume, error or append for delta"),
        ({"commit_bytes": 0}, "commit_bytes: expected 1"),
    ],
)
def test_a_wrong_argument_is_told_before_anything_is_written(
    golden_store: PathOf, tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        ingest(golden_store("offsets-4.9.4"), tmp_path / "out", **arguments)
    assert list(tmp_path.iterdir()) == []
