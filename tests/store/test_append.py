"""Appending: the same bytes as the reference writer, offsets that go on, owners that keep each other out."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmqfast
from rmqfast import AppendOptions, Message
from rmqfast.errors import (
    ArgumentError,
    StoreBusyError,
    StoreNotWritableError,
    UnknownColumnError,
    UnsupportedStoreError,
)
from rmqfast.store import repair
from tests import golden_stores
from tests.golden_stores import PathOf
from tests.reference import writer
from tests.reference.index_file import Geometry
from tests.reference.store import Store
from tests.store.dumped import check_keys

NOW = 1_700_000_000_000
TINY = AppendOptions(file_size=4096, queue_file_size=100, index_slots=10, index_entries=8, zone_offset_ms=0)
SMALL = AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=1000, index_entries=4000, zone_offset_ms=0)
Batches = Sequence[Sequence[Message]]

texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x01\x02"), min_size=1, max_size=12)
names = texts.filter(lambda name: name not in {"KEYS", "TAGS", "DELAY", "UNIQ_KEY"})
messages = st.builds(
    Message,
    topic=st.sampled_from(["T", "orders", "%RETRY%g"]),
    body=st.binary(max_size=400),
    tags=st.none() | texts.filter(lambda tag: "||" not in tag),
    keys=st.none() | texts,
    properties=st.dictionaries(names | st.just("UNIQ_KEY"), texts, max_size=3),
    queue_id=st.integers(0, 3),
    flag=st.integers(-(1 << 31), (1 << 31) - 1),
    born_timestamp=st.integers(0, 1 << 41),
)


def reference_message(message: Message, store_timestamp: int) -> writer.Message:
    given = [("KEYS", message.keys), ("TAGS", message.tags), *message.properties.items()]
    return writer.Message(
        topic=message.topic,
        body=message.body,
        queue_id=message.queue_id,
        properties=tuple((name, value) for name, value in given if value is not None),
        flag=message.flag,
        born_timestamp=store_timestamp if message.born_timestamp is None else message.born_timestamp,
        store_timestamp=store_timestamp,
    )


def write_reference(path: Path, batches: Batches) -> None:
    stored = [reference_message(m, NOW + 1500 * n) for n, batch in enumerate(batches) for m in batch]
    geometry = Geometry(TINY.index_slots, TINY.index_entries)
    writer.write_store(path, stored, writer.Options(TINY.file_size, TINY.queue_file_size, geometry))


def tree(path: Path) -> dict[str, bytes]:
    """File name to bytes; of the checkpoint not the index time, which speaks of full files that another one follows."""
    files = {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}
    # rmqfast's own
    files.pop("queue.ends", None)
    files["checkpoint"] = files.get("checkpoint", b"")[:16]
    return {name: data for name, data in files.items() if name != "lock"}


def rows(path: Path, topic: str | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rmqfast.open_store(path).scan(topic, verify_crc=True).to_arrow().to_pylist()
    return found


@settings(max_examples=30)
@given(
    batches=st.lists(st.lists(messages, min_size=1, max_size=12), min_size=1, max_size=6),
    is_opened_for_each=st.booleans(),
)
def test_a_store_has_the_bytes_that_the_reference_writer_gives_it(batches: Batches, is_opened_for_each: bool) -> None:
    clock = itertools.count(NOW, 1500)
    with TemporaryDirectory() as directory:
        path = Path(directory) / "ours"
        for together in [[batch] for batch in batches] if is_opened_for_each else [batches]:
            with rmqfast.open_store(path, mode="a", options=TINY, clock=lambda: next(clock)) as store:
                assert [store.append_many(batch) for batch in together] == [len(batch) for batch in together]
        write_reference(Path(directory) / "reference", batches)
        ours, reference = tree(path), tree(Path(directory) / "reference")
        assert sorted(ours) == sorted(reference)
        assert [name for name in ours if ours[name] != reference[name]] == []


def table_of(batch: Sequence[Message]) -> pa.Table:
    columns: dict[str, Any] = {
        name: [getattr(message, name) for message in batch]
        for name in ("topic", "body", "tags", "keys", "queue_id", "flag", "born_timestamp")
    }
    properties = pa.array([list(m.properties.items()) for m in batch], pa.map_(pa.string(), pa.string()))
    return pa.table(columns | {"properties": properties})


@settings(max_examples=10)
@given(batch=st.lists(messages, min_size=1, max_size=20))
@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_arrow_columns_give_the_bytes_that_messages_give(text: pa.DataType, batch: Sequence[Message]) -> None:
    table = table_of(batch)
    for name in ("topic", "tags", "keys"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(text))
    with TemporaryDirectory() as directory:
        for name, given in (
            ("messages", batch),
            ("arrow", table),
            ("slice", pa.concat_tables([table, table])[len(batch) :]),
        ):
            with rmqfast.open_store(Path(directory) / name, mode="a", options=TINY, clock=lambda: NOW) as store:
                assert store.append_many(given) == len(batch)
        assert tree(Path(directory) / "messages") == tree(Path(directory) / "arrow") == tree(Path(directory) / "slice")


def test_what_was_appended_is_read_while_the_store_is_open(tmp_path: Path) -> None:
    with rmqfast.open_store(tmp_path / "s", mode="a", options=SMALL, broker_name="b") as store:
        assert store.scan().to_arrow().num_rows == 0
        for n in range(500):
            result = store.append(Message("orders", b"%d" % n, tags="t", queue_id=n % 3))
            assert (result.queue_id, result.queue_offset) == (n % 3, n // 3)
        bodies = store.scan("orders", columns=["body", "broker_name"]).to_arrow().to_pylist()
        assert sorted(int(row["body"]) for row in bodies) == list(range(500))
        assert {row["broker_name"] for row in bodies} == {"b"}
        assert len(rows(tmp_path / "s")) == 500
    assert len(rows(tmp_path / "s", "orders")) == 500


def test_a_result_says_where_the_message_is(tmp_path: Path) -> None:
    with rmqfast.open_store(tmp_path / "s", mode="a", options=SMALL) as store:
        results = [store.append(Message("T", b"x" * 1000, queue_id=2)) for _ in range(80)]
    found = rows(tmp_path / "s")
    assert [tuple(row[name] for name in rmqfast.AppendResult._fields) for row in found] == [tuple(r) for r in results]
    assert results[-1].physical_offset > SMALL.file_size


def test_a_scan_of_one_store_is_appended_to_another(golden_store: PathOf, tmp_path: Path) -> None:
    source = rmqfast.open_store(golden_store("basic-4.9.4"))
    with rmqfast.open_store(tmp_path / "s", mode="a", options=AppendOptions(file_size=1 << 22)) as store:
        count = store.append_many(source.scan("fx_q1"))
    kept = ("topic", "tags", "keys", "body", "born_timestamp", "flag")
    wanted = source.scan("fx_q1", columns=kept).to_arrow()
    assert count == wanted.num_rows > 1000
    assert rmqfast.open_store(tmp_path / "s").scan("fx_q1", columns=kept).to_arrow() == wanted


@pytest.mark.parametrize(
    "message",
    [
        Message("orders", b"x", tags="t", properties={"a": "1", "DELAY": "3"}, queue_id=5),
        Message("orders", b"x", tags="t", properties={"a": "1", "DELAY": "1"}, queue_id=5, delay_level=3),
    ],
)
def test_a_delayed_message_waits_in_the_queue_of_its_level(tmp_path: Path, message: Message) -> None:
    with rmqfast.open_store(tmp_path / "ours", mode="a", options=TINY, clock=lambda: NOW) as store:
        assert store.append(message)[:2] == (2, 0)
    # in the order of Java's map, as the real 4.9.4 writes them
    added = {"a": "1", "REAL_TOPIC": "orders", "DELAY": "3", "TAGS": "t", "REAL_QID": "5"}
    waiting = Message("SCHEDULE_TOPIC_XXXX", b"x", properties=added, queue_id=2)
    write_reference(tmp_path / "reference", [[waiting]])
    assert tree(tmp_path / "ours") == tree(tmp_path / "reference")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("topic", ""),
        ("topic", "../etc"),
        ("topic", "t" * 128),
        ("topic", None),
        ("topic", "SCHEDULE_TOPIC_XXXX"),
        ("body", None),
        ("body", b"x" * 1001),
        ("tags", "a\x01b"),
        ("keys", "a\x02b"),
        ("queue_id", -1),
        ("queue_id", 1 << 31),
        ("flag", 1 << 31),
        ("properties", [("a", "")]),
        ("properties", [("", "a")]),
        ("properties", [("DELAY", "soon")]),
        ("properties", [("a", "x" * 32767)]),
    ],
)
def test_a_batch_with_a_bad_row_is_refused_as_a_whole(tmp_path: Path, column: str, value: object) -> None:
    table = table_of([Message("T", b"x", tags="a", keys="k", properties={"p": "v"})] * 5)
    bad = table[column].to_pylist()
    bad[3] = value
    field = pa.int64() if column in {"queue_id", "flag"} else table.schema.field(column).type
    bad_table = table.set_column(table.schema.get_field_index(column), column, pa.array(bad, field))
    options = AppendOptions(file_size=1 << 20, index_slots=10, index_entries=8, max_message_size=1000)
    with rmqfast.open_store(tmp_path / "s", mode="a", options=options) as store:
        reader = pa.Table.from_batches(table.cast(bad_table.schema).to_batches() + bad_table.to_batches())
        with pytest.raises(ArgumentError, match="row 8 "):
            store.append_many(reader)
        assert store.append(Message("T", b"last")).queue_offset == 5
    assert [row["body"] for row in rows(tmp_path / "s")] == [b"x"] * 5 + [b"last"]


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    offsets = pa.array([0, 2], pa.int32()).buffers()[1]
    not_text = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    with rmqfast.open_store(tmp_path / "s", mode="a", options=TINY) as store:
        for column in ("topic", "tags", "keys"):
            columns: dict[str, Any] = {"topic": ["T"], "body": [b""]} | {column: not_text}
            with pytest.raises(ArgumentError):
                store.append_many(pa.table(columns))
    assert rows(tmp_path / "s") == []


def test_columns_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with rmqfast.open_store(tmp_path / "s", mode="a", options=TINY) as store:
        with pytest.raises(UnknownColumnError, match="did you mean tags"):
            store.append_many(pa.table({"topic": ["T"], "body": [b""], "tag": ["a"]}))
        with pytest.raises(ArgumentError, match="body"):
            store.append_many(pa.table({"topic": ["T"]}))
        with pytest.raises(ArgumentError, match="queue_id"):
            store.append_many(pa.table({"topic": ["T"], "body": [b""], "queue_id": ["0"]}))
        with pytest.raises(TypeError, match="message 1"):
            store.append_many([Message("T", b""), "no message"])  # type: ignore[list-item]
    assert rows(tmp_path / "s") == []


def test_a_message_that_fits_no_file_is_refused(tmp_path: Path) -> None:
    # 91 bytes, the topic, the body and 8 for the blank record
    with rmqfast.open_store(tmp_path / "s", mode="a", options=TINY) as store:
        with pytest.raises(ArgumentError, match="4088"):
            store.append(Message("T", b"x" * (4096 - 92 - 8 + 1)))
        assert store.append(Message("T", b"x" * (4096 - 92 - 8))).physical_offset == 0


def test_abort_is_there_while_the_store_is_open(tmp_path: Path) -> None:
    store = rmqfast.open_store(tmp_path / "s", mode="a", options=TINY)
    assert (tmp_path / "s" / "abort").exists()
    store.append(Message("T", b""))
    store.close()
    store.close()
    assert not (tmp_path / "s" / "abort").exists()
    assert Store.open(tmp_path / "s", geometry=Geometry(10, 8)).topics() == {"T": {0: (0, 1)}}
    with pytest.raises(StoreNotWritableError, match="closed"):
        store.append(Message("T", b""))


OWNER = """
import sys, rmqfast
tiny = rmqfast.AppendOptions(file_size=4096, index_slots=10, index_entries=8)
store = rmqfast.open_store(sys.argv[1], mode="a", options=tiny)
store.append(rmqfast.Message("T", b"first", keys="k"))
print("open", flush=True)
sys.stdin.read()
store.close()
"""


def test_a_store_has_one_owner(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "s")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        for _ in range(2):
            with pytest.raises(StoreBusyError, match=f"process {owner.pid}"):
                rmqfast.open_store(tmp_path / "s", mode="a")
        owner.communicate()
    with rmqfast.open_store(tmp_path / "s", mode="a") as store:
        with pytest.raises(StoreBusyError, match=f"{os.getpid()}"):
            rmqfast.open_store(tmp_path / "s", mode="a")
        assert store.append(Message("T", b"second")).queue_offset == 1


def test_a_java_lock_on_the_first_byte_keeps_out(tmp_path: Path) -> None:
    lock = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)"
    (tmp_path / "s").mkdir()
    command = [
        sys.executable,
        "-c",
        lock + "; print('locked', flush=True); sys.stdin.read()",
        str(tmp_path / "s" / "lock"),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"locked\n"
        with pytest.raises(StoreBusyError, match=f"process {owner.pid}"):
            rmqfast.open_store(tmp_path / "s", mode="a")
        owner.communicate()
    with rmqfast.open_store(tmp_path / "s", mode="a", options=TINY):
        assert subprocess.run([sys.executable, "-c", lock, str(tmp_path / "s" / "lock")], check=False).returncode == 1


def test_sync_and_flush_bring_the_checkpoint_up_to_date(tmp_path: Path) -> None:
    clock = itertools.count(NOW)
    with rmqfast.open_store(tmp_path / "s", mode="a", options=TINY, flush="sync", clock=lambda: next(clock)) as store:
        store.append_many([Message("T", b"", keys="k")] * 20)
        assert Store.open(tmp_path / "s", geometry=Geometry(10, 8)).checkpoint.physic_msg_timestamp == 0
        store.flush()
        checkpoint = Store.open(tmp_path / "s", geometry=Geometry(10, 8)).checkpoint
        assert (checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp) == (NOW, NOW)
        assert checkpoint.index_msg_timestamp == NOW


def test_stores_of_other_kinds_are_refused(tmp_path: Path) -> None:
    for name in ("consumequeue/CURRENT", "timerwheel", "dledger-n0/data/0", "photos.zip"):
        path = tmp_path / name.partition("/")[0] / "s"
        (path / name).parent.mkdir(parents=True)
        (path / name).touch()
        if name != "photos.zip":
            (path / "commitlog").mkdir()
        with pytest.raises(UnsupportedStoreError):
            rmqfast.open_store(path, mode="a")
        assert not (path / "abort").exists()


def test_a_store_with_the_timer_wheel_of_5_is_refused_by_name_and_its_export_goes_on(
    golden_store_copy: PathOf, tmp_path: Path
) -> None:
    path = golden_store_copy("basic-5.3.3")
    (path / "timerwheel").touch()
    named = 'timerwheel: timers of RocketMQ 5.x .*mode "r".*`rmqfast store export DIR OUT`'
    for change in (lambda: rmqfast.open_store(path, mode="a"), lambda: repair(path)):
        with pytest.raises(UnsupportedStoreError, match=named):
            change()
    with rmqfast.open_store(path) as store:
        assert store.verify().ok
        store.export(tmp_path / "out")
    before = rows(tmp_path / "out")
    with rmqfast.open_store(tmp_path / "out", mode="a") as copy:
        assert copy.recovery is None
        copy.append(Message("fy_q1", b"new"))
    assert [row["body"] for row in rows(tmp_path / "out")[len(before) :]] == [b"new"]


@pytest.mark.parametrize("name", ["basic-4.9.4", "basic-5.3.3", "delaytx-4.9.4", "offsets-4.9.4"])
def test_a_real_brokers_store_goes_on(golden_store_copy: PathOf, name: str) -> None:
    path = golden_store_copy(name)
    before = rows(path)
    topics = Store.open(path, geometry=golden_stores.GEOMETRY).topics()
    (topic, queues), *_ = sorted(topics.items())
    with rmqfast.open_store(path, mode="a") as store:
        results = [store.append(Message(topic, b"new %d" % n, keys="new")) for n in range(2000)]
    assert [r.queue_offset for r in results] == list(range(queues[0][1], queues[0][1] + 2000))
    after = rows(path)
    assert after[: len(before)] == before
    assert [row["body"] for row in after[len(before) :]] == [b"new %d" % n for n in range(2000)]
    reopened = Store.open(path, geometry=golden_stores.GEOMETRY)
    assert [r.physical_offset for r in reopened.query(topic, "new")] == [r.physical_offset for r in results[-64:]]


@pytest.mark.long
def test_the_real_rocketmq_opens_a_store_of_ours(tmp_path: Path) -> None:
    options = AppendOptions(file_size=1 << 20, queue_file_size=2000, index_slots=1000, index_entries=4000)
    with rmqfast.open_store(tmp_path / "s", mode="a", options=options) as store:
        for n in range(3000):
            store.append(Message(f"T{n % 3}", b"x" * n, tags=f"t{n % 5}", keys=f"k{n} all", queue_id=n % 4))
        store.append_many(
            [Message("late", b"x", properties={"DELAY": "2"}), Message("中".encode().hex(), b"", tags="订单")]
        )
    check_keys(tmp_path / "s")


@pytest.mark.long
def test_the_real_rocketmq_opens_its_own_store_that_we_appended_to(golden_store_copy: PathOf) -> None:
    path = golden_store_copy("basic-4.9.4")
    with rmqfast.open_store(path, mode="a") as store:
        store.append_many([Message("fx_q1", b"x" * n, tags="TagA", keys=f"new{n}") for n in range(2000)])
        store.append_many([Message("brand_new", b"y", keys=json.dumps([n]), queue_id=n % 3) for n in range(500)])
    check_keys(path)
