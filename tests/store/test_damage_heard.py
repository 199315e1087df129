"""Damage reaches whoever reads: a warning at his own line, or an error, through every door of a scan."""

from __future__ import annotations

import gc
import linecache
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import duckdb
import ibis
import narwhals as nw
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet
import pytest
from datafusion import SessionContext

import rmqfast
from rmqfast import DamageWarning, errors
from rmqfast.store import scan_source
from tests.reference.writer import Message
from tests.store.small_store import COUNT, SmallStore, small_store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_collections")]
LOST = 25


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    """A record is zeroes."""
    small = small_store(tmp_path / "store")
    small.patch(small.records[LOST].physical_offset, bytes(8))
    return small


def by_duckdb(scan: rmqfast.Scan) -> int:
    [count] = duckdb.connect().execute("SELECT count(*) FROM scan").fetchone() or [0]
    return int(count)


def by_parquet(scan: rmqfast.Scan) -> int:
    sink = pa.BufferOutputStream()
    stream = pa.RecordBatchReader.from_stream(scan)
    with pa.parquet.ParquetWriter(sink, stream.schema) as writer:
        for batch in stream:
            writer.write_batch(batch)
    return int(pa.parquet.read_metadata(pa.BufferReader(sink.getvalue())).num_rows)


def by_datafusion(scan: rmqfast.Scan) -> int:
    context = SessionContext()
    context.register_dataset("t", scan.dataset())
    of_scan = context.sql("SELECT queue_offset FROM t")
    return len(of_scan.to_arrow_table())


def by_duckdb_over_the_dataset(scan: rmqfast.Scan) -> int:
    connection = duckdb.connect()
    connection.register("scanned", scan.dataset())
    return len(connection.execute("SELECT * FROM scanned").fetchall())


DOORS: dict[str, Callable[[rmqfast.Scan], int]] = {
    "batches": lambda scan: sum(batch.num_rows for batch in scan.batches()),
    "to_arrow": lambda scan: len(scan.to_arrow()),
    "to_pandas": lambda scan: len(scan.to_pandas()),
    "to_polars": lambda scan: len(scan.to_polars()),
    "pa.table": lambda scan: len(pa.table(scan)),
    "pl.DataFrame": lambda scan: len(pl.DataFrame(scan)),
    "RecordBatchReader.read_all": lambda scan: len(pa.RecordBatchReader.from_stream(scan).read_all()),
    "RecordBatchReader, a loop": lambda scan: sum(b.num_rows for b in pa.RecordBatchReader.from_stream(scan)),
    "a scanner of pyarrow": lambda scan: pa.dataset.Scanner.from_batches(scan).count_rows(),
    "duckdb": by_duckdb,
    "a writer of Parquet": by_parquet,
    "dataset.to_table": lambda scan: len(scan.dataset().to_table()),
    "dataset.to_batches": lambda scan: sum(batch.num_rows for batch in scan.dataset().to_batches()),
    "dataset.count_rows": lambda scan: scan.dataset().count_rows(pc.field("queue_offset") >= 0),
    "a fragment": lambda scan: sum(len(part.to_table()) for part in scan.dataset().get_fragments()),
    "duckdb over the dataset": by_duckdb_over_the_dataset,
    "datafusion": by_datafusion,
    "scan_pyarrow_dataset": lambda scan: len(pl.scan_pyarrow_dataset(scan.dataset()).collect()),
    "lazy": lambda scan: len(scan.lazy().collect()),
    "lazy, a filter": lambda scan: len(scan.lazy().filter(pl.col("queue_offset") >= 0).collect()),
    "ibis": lambda scan: ibis.duckdb.connect().to_pyarrow(ibis.memtable(scan.dataset())).num_rows,
    "narwhals": lambda scan: len(nw.from_native(scan.lazy()).collect()),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_each_reading_warns_once_at_the_line_that_reads(
    store: SmallStore, door: Callable[[rmqfast.Scan], int], threads: int
) -> None:
    with rmqfast.open_store(store.path) as opened:
        scan = opened.scan("T", way="log", threads=threads, columns=["queue_offset"])
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                rows = door(scan)
                gc.collect()
            assert rows == COUNT - 1
            [warning] = caught
            assert warning.category is DamageWarning
            assert str(warning.message).startswith("1 damaged places, the first in ")
            assert warning.filename == __file__
            assert "scan" in linecache.getline(__file__, warning.lineno)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_reading_that_is_to_fail_fails_through_every_door(
    store: SmallStore, door: Callable[[rmqfast.Scan], int], threads: int
) -> None:
    with rmqfast.open_store(store.path) as opened:
        scan = opened.scan("T", way="log", threads=threads, columns=["queue_offset"], on_damage="fail")
        for _ in range(2):
            with pytest.raises(Exception, match=r'expected a record.*on_damage="warn" reads what is left') as caught:
                door(scan)
            assert not isinstance(caught.value, Warning)
            assert [entry.offset for entry in scan.damage] == [store.records[LOST].physical_offset]
        with pytest.raises(errors.CorruptError, match="expected a record"):
            scan.to_arrow()


def test_nothing_is_given_behind_a_loss_that_is_to_fail(store: SmallStore) -> None:
    with rmqfast.open_store(store.path) as opened:
        scan = opened.scan("T", way="log", batch_rows=1, columns=["queue_offset"], on_damage="fail")
        batches = scan.batches()
        offsets: list[int] = []
        with pytest.raises(errors.CorruptError):
            offsets.extend(batch["queue_offset"][0].as_py() for batch in batches)
        assert offsets == list(range(len(offsets)))
        assert len(offsets) <= LOST


@pytest.mark.parametrize("on_damage", ["warn", "fail"])
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_sound_store_is_read_without_a_word(
    tmp_path: Path, door: Callable[[rmqfast.Scan], int], on_damage: scan_source.OnDamage
) -> None:
    sound = small_store(tmp_path / "store")
    with rmqfast.open_store(sound.path) as opened, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert door(opened.scan("T", on_damage=on_damage, columns=["queue_offset"])) == COUNT


@pytest.mark.parametrize("way", ["C stream", "batches"])
def test_a_reading_that_is_given_up_warns_of_what_it_met(store: SmallStore, way: str) -> None:
    with rmqfast.open_store(store.path) as opened:
        scan = opened.scan("T", way="log", batch_rows=LOST + 5, columns=["queue_offset"])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            reading = pa.RecordBatchReader.from_stream(scan) if way == "C stream" else scan.batches()
            next(iter(reading))
            assert caught == []
            del reading
            gc.collect()
        assert [warning.category for warning in caught] == [DamageWarning]


def test_a_warning_that_is_an_error_ends_the_reading(store: SmallStore) -> None:
    with rmqfast.open_store(store.path) as opened, warnings.catch_warnings():
        warnings.simplefilter("error", DamageWarning)
        scan = opened.scan("T", way="log", columns=["queue_offset"])
        with pytest.raises(DamageWarning):
            scan.to_arrow()
        with pytest.raises(pa.ArrowInvalid, match="damaged place"):
            pa.table(scan)


def test_a_stream_that_another_thread_reads_to_its_end_warns_at_the_line_that_made_it(store: SmallStore) -> None:
    with rmqfast.open_store(store.path) as opened, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scan = opened.scan("T", way="log", columns=["queue_offset"])
        stream = pa.RecordBatchReader.from_stream(scan)
        thread = threading.Thread(target=stream.read_all)
        thread.start()
        thread.join()
    [warning] = caught
    assert "from_stream(scan)" in linecache.getline(warning.filename, warning.lineno)


@pytest.mark.parametrize("batch_rows", [1, 10, COUNT])
def test_a_tail_that_is_to_fail_gives_nothing_behind_a_loss_and_can_be_continued(
    store: SmallStore, batch_rows: int
) -> None:
    with rmqfast.open_store(store.path) as opened:
        offsets: list[int] = []
        tail = opened.tail("T", start="begin", stop="end", batch_rows=batch_rows, on_damage="fail")
        for _ in range(2):
            with pytest.raises(errors.CorruptError, match=r'expected a record.*on_damage="warn" reads what is left'):
                offsets.extend(offset for batch in tail for offset in batch["queue_offset"].to_pylist())
        assert offsets == list(range(len(offsets)))
        assert len(offsets) <= LOST
        assert [entry.offset for entry in tail.damage] == [store.records[LOST].physical_offset]
        # whoever takes the loss goes on there
        with opened.tail("T", start=tail.position, stop="end") as rest, pytest.warns(DamageWarning):
            offsets.extend(offset for batch in rest for offset in batch["queue_offset"].to_pylist())
        assert offsets == [offset for offset in range(COUNT) if offset != LOST]


def test_a_tail_that_is_to_fail_fails_for_a_body_that_does_not_decompress(tmp_path: Path) -> None:
    compressed = Message("T", b"no zlib stream", sys_flag=1)
    store = small_store(tmp_path / "store", [Message("T", b"first"), compressed, Message("T", b"last")])
    with rmqfast.open_store(store.path) as opened:
        tail = opened.tail("T", start="begin", stop="end", on_damage="fail")
        with pytest.raises(errors.CorruptError, match="expected a sound zlib stream"):
            tail.poll()
        assert tail.position == 0
        with pytest.warns(DamageWarning):
            bodies = [body for batch in opened.tail("T", start=0, stop="end") for body in batch["body"].to_pylist()]
        assert bodies == [b"first", None, b"last"]


def test_a_tail_that_is_to_fail_ends_as_others_do_where_nothing_is_damaged(tmp_path: Path) -> None:
    with rmqfast.open_store(small_store(tmp_path / "store").path) as opened:
        tail = opened.tail("T", start="begin", stop="end", on_damage="fail")
        assert sum(batch.num_rows for batch in tail) == COUNT


def test_on_damage_is_one_of_two(store: SmallStore) -> None:
    opened = rmqfast.open_store(store.path)
    for read in (opened.scan, opened.tail):
        with pytest.raises(errors.ArgumentError, match="on_damage: expected 'warn' or 'fail', got 'ignore'"):
            read("T", on_damage="ignore")  # type: ignore[arg-type]


def test_a_look_up_tells_of_records_that_it_was_led_to_and_could_not_read(tmp_path: Path) -> None:
    path = tmp_path / "store"
    options = rmqfast.AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=16, index_entries=400)
    with rmqfast.open_store(path, mode="a", options=options) as writer:
        places = [writer.append(rmqfast.Message("T", b"body", keys=f"k{n}")) for n in range(20)]
        with rmqfast.open_store(path) as reader:
            ids = [message.msg_id for message in reader.get("T", 0, 0, max_messages=20).messages]
    lost = places[7]
    with next((path / "commitlog").iterdir()).open("r+b") as log:
        log.seek(lost.physical_offset)
        log.write(bytes(8))
    with rmqfast.open_store(path) as store:
        with pytest.warns(DamageWarning, match=f"at offset {lost.physical_offset}: expected a message") as caught:
            assert store.query("T", "k7") == []
        assert [warning.filename for warning in caught] == [__file__]
        for message_id in (lost.offset_msg_id, ids[7]):
            with (
                pytest.warns(DamageWarning, match=f"at offset {lost.physical_offset}"),
                pytest.raises(errors.UnknownMessageError, match=f"unknown message '{message_id}'"),
            ):
                store.message_by_id(message_id)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert [message.keys for message in store.query("T", "k8")] == ["k8"]
            assert store.message_by_id(places[8].offset_msg_id).keys == "k8"
            with pytest.raises(errors.UnknownMessageError):
                store.message_by_id("7F000001000052120000000000FFFFFF")


def test_a_tail_warns_once_of_damage_that_it_meets_last(store: SmallStore) -> None:
    with rmqfast.open_store(store.path) as opened, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with opened.tail("T", start="begin", stop="end") as tail:
            rows = sum(batch.num_rows for batch in tail)
    assert rows == COUNT - 1
    assert [(warning.category, warning.filename) for warning in caught] == [(DamageWarning, __file__)]
