"""Exports: the rows of the slice, in a store that is sound, or in JSON lines; whole or not at all."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmqfast
from rmqfast.errors import ArgumentError, StoreBusyError, StoreNotFoundError, UnknownTopicError
from tests import golden_stores
from tests.golden_stores import NAMES, PathOf
from tests.reference import random_store
from tests.reference.config_json import loads
from tests.reference.record import Record, encode, verify_property_crc
from tests.reference.store import Store
from tests.reference.writer import Message, Options, write_store
from tests.store.scanned import opened, rows_and_damage, rows_of
from tests.store.small_store import small_store

Thought = tuple[list[Message | tuple[Message, ...]], Options]

MOVED = ("physical_offset", "offset_msg_id")
CRC = "__CRC32#"
EXAMPLES = 20


def still(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what an export changes: the place, the id that is made of it, the CRC that covers it."""
    return [_still(row) for row in rows]


def _still(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name not in MOVED}
    if row["msg_id"] == row["offset_msg_id"]:
        del kept["msg_id"]
    return kept | {"properties": {name: value for name, value in row["properties"].items() if name != CRC}}


def files_of(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def table_of(path: Path) -> dict[str, Any]:
    """The topics that a configuration has."""
    config = loads(path.read_text())
    assert isinstance(config, dict)
    table: Any = config["topicConfigTable"]
    assert isinstance(table, dict)
    return table


def sizes_of(options: Options) -> rmqfast.AppendOptions:
    """The sizes that the reference writes: an index with few entries does not tell its own."""
    slots, entries = options.index_geometry
    return rmqfast.AppendOptions(
        file_size=options.commitlog_file_size,
        queue_file_size=options.consume_queue_file_size,
        index_slots=slots,
        index_entries=entries,
        zone_offset_ms=0,
    )


def check_sound(path: Path) -> None:
    """Nothing is damaged, and an owner goes on without recovery."""
    report = opened(path).verify()
    assert (report.damage, report.unlisted, report.aborted) == ([], 0, False)
    with rmqfast.open_store(path, mode="a", options=rmqfast.AppendOptions(index_slots=10, index_entries=30)) as store:
        assert store.recovery is None


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("damaged")])
def test_a_whole_golden_store_is_exported_row_by_row(name: str, golden_store: PathOf, tmp_path: Path) -> None:
    store = opened(golden_store(name))
    report = store.export(tmp_path / "out")
    assert (report.rows, report.unlisted, report.ok) == (len(golden_stores.expected_rows(name)), 0, True)
    copy = opened(tmp_path / "out")
    assert still(rows_of(copy.scan())) == still(rows_of(store.scan()))
    used = {topic: queues for topic, queues in store.topics().items() if any(high for _, high in queues.values())}
    found = copy.topics()
    for topic, queues in used.items():
        # a queue without messages is none; one whose messages are gone has no place to keep its offset
        assert found[topic] == {queue: bound for queue, bound in queues.items() if bound[0] < bound[1]}
    assert copy.info().commit_log_file_size == store.info().commit_log_file_size
    check_sound(tmp_path / "out")


@pytest.mark.parametrize("name", ["basic-4.9.4", "basic-5.4.0", "delaytx-5.3.3"])
def test_the_export_of_an_export_is_the_same_bytes(name: str, golden_store: PathOf, tmp_path: Path) -> None:
    opened(golden_store(name)).export(tmp_path / "one")
    opened(tmp_path / "one").export(tmp_path / "two")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    assert {file.name for file in (tmp_path / "one").iterdir()} >= {"commitlog", "consumequeue", "index", "checkpoint"}
    assert not (tmp_path / "one" / "abort").exists()


@settings(max_examples=EXAMPLES)
@given(random_store.stores())
def test_a_random_store_is_exported_as_the_reference_reads_it(thought: Thought) -> None:
    with tempfile.TemporaryDirectory() as directory:
        written = write_store(Path(directory) / "store", *thought)
        source = opened(written.path, written.commitlog_dirs)
        report = source.export(Path(directory) / "out", options=sizes_of(thought[1]))
        assert report.rows == len(written.records)
        copy = Store.open(Path(directory) / "out", geometry=thought[1].index_geometry)
        assert still(list(copy.rows())) == still(rows_of(source.scan()))
        check_records(written.records, list(copy.records()))
        report_of_copy = opened(Path(directory) / "out").verify()
        assert report_of_copy.damage == []


def check_records(before: list[Record], after: list[Record]) -> None:
    """Each record is the same bytes but for its place, and the CRC that covers that."""
    for old, new in zip(before, after, strict=True):
        assert (old.body, old.sys_flag, old.v2, old.flag) == (new.body, new.sys_flag, new.v2, new.flag)
        assert (old.queue_offset, old.queue_id, old.topic) == (new.queue_offset, new.queue_id, new.topic)
        assert (CRC in old.properties) == (CRC in new.properties)
        assert verify_property_crc(encode(old)) == verify_property_crc(encode(new))


@settings(max_examples=EXAMPLES)
@given(random_store.stores(), st.data())
def test_a_slice_of_a_random_store_is_what_a_scan_of_it_gives(thought: Thought, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        written = write_store(Path(directory) / "store", *thought)
        source = opened(written.path, written.commitlog_dirs)
        topics = sorted(source.topics())
        if not topics:
            return
        limits = st.none() | st.integers(0, 12)
        options: dict[str, Any] = {
            "tags": data.draw(st.sampled_from(["*", "TagA", "Aa || BB", "none"])),
            "start_offset": data.draw(limits),
            "end_offset": data.draw(limits),
            "queue_ids": data.draw(st.none() | st.lists(st.integers(0, 3))),
        }
        topic = data.draw(st.sampled_from(topics))
        out = Path(directory) / "out"
        wanted = rows_of(source.scan(topic, **options))
        sizes = sizes_of(thought[1])
        report = source.export(out, topic, options=sizes, **options)
        assert report.rows == len(wanted)
        copy = opened(out)
        for way in ("log", "queue", None):
            assert still(rows_of(copy.scan(topic, way=way))) == still(wanted)
        assert copy.verify().damage == []
        check_gets(copy, topic, wanted)
        copy.export(Path(directory) / "again", options=sizes)
        assert files_of(out) == files_of(Path(directory) / "again")


def check_gets(store: rmqfast.MessageStore, topic: str, wanted: list[dict[str, Any]]) -> None:
    """Pulls from the first to the last offset give all messages of each queue, each at its offset."""
    for queue_id, (low, high) in store.topics().get(topic, {}).items():
        of_queue = [row["queue_offset"] for row in wanted if row["queue_id"] == queue_id]
        assert (low, high) == (min(of_queue), max(of_queue) + 1)
        found, at = [], low
        while at < high:
            result = store.get(topic, queue_id, at)
            assert result.next_begin_offset > at
            assert result.damage == []
            found += [message.queue_offset for message in result.messages]
            at = result.next_begin_offset
        assert found == of_queue


def test_several_topics_go_along_in_the_order_of_the_log(golden_store: PathOf, tmp_path: Path) -> None:
    store = opened(golden_store("basic-4.9.4"))
    report = store.export(tmp_path / "out", ["fx_q1", "fx_plain"])
    rows = [row for row in rows_of(store.scan()) if row["topic"] in {"fx_q1", "fx_plain"}]
    assert report.rows == len(rows)
    assert still(rows_of(opened(tmp_path / "out").scan())) == still(rows)
    table = table_of(tmp_path / "out/config/topics.json")
    theirs = table_of(golden_store("basic-4.9.4") / "config/topics.json")
    assert table == {topic: theirs[topic] for topic in ("fx_q1", "fx_plain")}
    with pytest.raises(UnknownTopicError, match="did you mean fx_q1"):
        store.export(tmp_path / "other", ["fx_plain", "fx_q11"])


def test_a_topic_without_configuration_gets_one_with_its_queues(tmp_path: Path) -> None:
    messages = [Message("T", b"x", queue_id=n % 3) for n in range(6)]
    store = opened(write_store(tmp_path / "store", messages, Options()).path)
    store.export(tmp_path / "out")
    entry = table_of(tmp_path / "out/config/topics.json")["T"]
    assert (entry["readQueueNums"], entry["writeQueueNums"], entry["perm"]) == (3, 3, 6)


def test_delayed_messages_keep_the_time_to_deliver_and_how_far_that_is(golden_store: PathOf, tmp_path: Path) -> None:
    path, topic = golden_store("delaytx-4.9.4"), "SCHEDULE_TOPIC_XXXX"
    opened(path).export(tmp_path / "out")
    before, after = (Store.open(store, geometry=golden_stores.GEOMETRY) for store in (path, tmp_path / "out"))
    queues = [queue for queue in before.queues if queue[0] == topic and before.queues[queue].max_offset]
    assert queues
    for queue in queues:
        codes = [[unit.tags_code for _, unit in store.queues[queue].units()] for store in (before, after)]
        assert codes[0] == codes[1]
    assert files_of(tmp_path / "out" / "config")["delayOffset.json"] == (path / "config/delayOffset.json").read_bytes()


def test_json_lines_are_those_of_the_rows(golden_store: PathOf, tmp_path: Path) -> None:
    store, stream, told = opened(golden_store("basic-4.9.4")), io.StringIO(), list[tuple[int, int]]()
    report = store.export(tmp_path / "out.jsonl", "fx_q1", tags="Aa || BB", progress=lambda *at: told.append(at))
    text = (tmp_path / "out.jsonl").read_text()
    assert (report.format, report.rows, report.bytes) == ("jsonl", 213, len(text.encode()))
    offsets = [row["queue_offset"] for row in rows_of(store.scan("fx_q1", tags="Aa || BB"))]
    assert [json.loads(line)["queue_offset"] for line in text.splitlines()] == offsets
    assert told[-1][0] == told[-1][1] > 0
    assert store.export(stream, "fx_q1", tags="Aa || BB").rows == 213
    assert stream.getvalue() == text
    assert [file.name for file in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("kind", ["store", "jsonl"])
def test_damage_is_left_out_and_told(tmp_path: Path, kind: Any) -> None:
    small = small_store(tmp_path / "store")
    hurt = small.records[20]
    small.patch(hurt.physical_offset + 60, b"\xff" * 40)
    _, damage = rows_and_damage(small.path, verify_crc=True)
    report = opened(small.path).export(tmp_path / "out", format=kind)
    assert (report.ok, report.damage) == (False, damage)
    assert report.rows == len(small.records) - 1
    if kind == "store":
        rows, found = rows_and_damage(tmp_path / "out", "T", way="queue")
        assert (still(rows), found) == (still(small.rows_but(lambda record: record == hurt)), [])
        assert opened(tmp_path / "out").verify().ok


def test_a_log_that_ends_in_half_a_record_is_exported_up_to_there(golden_store: PathOf, tmp_path: Path) -> None:
    report = opened(golden_store("damaged-4.9.4")).export(tmp_path / "out")
    assert [damage.offset for damage in report.damage] == [
        golden_stores.expected("damaged-4.9.4")["end"][0]["commitLogOffset"]
    ]
    check_sound(tmp_path / "out")


def test_records_that_are_prepared_go_along_only_without_a_topic(tmp_path: Path) -> None:
    messages = [Message("T", b"x", sys_flag=flag, properties=(("KEYS", "k"),)) for flag in (0, 4, 8, 12, 0)]
    store = opened(write_store(tmp_path / "store", messages, Options()).path)
    assert store.export(tmp_path / "all").rows == 5
    assert store.export(tmp_path / "topic", "T").rows == store.export(tmp_path / "list", ["T"]).rows == 3
    assert [message.sys_flag for message in opened(tmp_path / "all").query("T", "k")] == [0, 4, 8, 0]
    assert opened(tmp_path / "all").topics() == {"T": {0: (0, 3)}}


def test_the_later_generation_of_a_topic_is_listed(tmp_path: Path) -> None:
    small = small_store(tmp_path / "store", [Message("T", b"%d" % n) for n in range(6)])
    # as if the topic had been deleted and made again after three messages
    for n, record in enumerate(small.records[3:]):
        small.patch(record.physical_offset + 20, n.to_bytes(8, "big"))
    unit = small.queue_file.read_bytes()[60:120]
    small.queue_file.write_bytes(unit.ljust(2000, b"\0"))
    opened(small.path).export(tmp_path / "out")
    messages = opened(tmp_path / "out").get("T", 0, 0).messages
    assert [message.body for message in messages] == [b"3", b"4", b"5"]
    check_sound(tmp_path / "out")


def test_a_broken_queue_offset_fills_no_disk(tmp_path: Path) -> None:
    small = small_store(tmp_path / "store")
    small.patch(small.records[40].physical_offset + 20, (1 << 60).to_bytes(8, "big"))
    report = opened(small.path).export(tmp_path / "out")
    assert (report.rows, report.unlisted) == (60, 1)
    assert opened(tmp_path / "out").topics() == {"T": {0: (0, 60)}}


def test_files_of_queues_have_the_times_of_their_last_messages(golden_store: PathOf, tmp_path: Path) -> None:
    opened(golden_store("basic-4.9.4")).export(tmp_path / "out", "fx_q1", tags="Aa || BB")
    times = {row["queue_offset"]: row["store_timestamp"] for row in rows_of(opened(tmp_path / "out").scan("fx_q1"))}
    files = sorted((tmp_path / "out/consumequeue/fx_q1/0").iterdir())
    assert len(files) == 13
    for n, file in enumerate(files):
        last = max(offset for offset in times if offset // 100 == n)
        assert round(file.stat().st_mtime * 1000) == times[last]


def test_a_store_without_queues_gets_some(golden_store_copy: PathOf, tmp_path: Path) -> None:
    path = golden_store_copy("basic-4.9.4")
    before = {topic: queues for topic, queues in opened(path).topics().items() if topic.startswith("fx_")}
    shutil.rmtree(path / "consumequeue")
    opened(path).export(
        tmp_path / "out",
        options=rmqfast.AppendOptions(file_size=1 << 20, queue_file_size=2000, index_slots=1000, index_entries=4000),
    )
    after = opened(tmp_path / "out").topics()
    assert {topic: after[topic] for topic in before} == before
    assert opened(tmp_path / "out").verify().ok


def test_a_place_in_a_log_that_is_elsewhere_is_refused(tmp_path: Path) -> None:
    small = small_store(tmp_path / "store")
    (small.path / "commitlog").rename(tmp_path / "log")
    with pytest.raises(ArgumentError, match="outside"):
        opened(small.path, [tmp_path / "log"]).export(tmp_path / "log" / "out")
    assert opened(small.path, [tmp_path / "log"]).export(tmp_path / "out").rows == 60


def test_queues_that_are_lost_are_listed_again_as_they_were(golden_store: PathOf, tmp_path: Path) -> None:
    opened(golden_store("basic-4.9.4")).export(tmp_path / "out", tags="Aa || BB")
    before = files_of(tmp_path / "out" / "consumequeue")
    shutil.rmtree(tmp_path / "out" / "consumequeue")
    sizes = rmqfast.AppendOptions(queue_file_size=2000)
    assert rmqfast.store.repair(tmp_path / "out", options=sizes).unlisted == 0
    assert files_of(tmp_path / "out" / "consumequeue") == before


def test_an_empty_slice_is_an_empty_store(tmp_path: Path) -> None:
    small = small_store(tmp_path / "store")
    assert opened(small.path).export(tmp_path / "out", "T", tags="nobody's").rows == 0
    assert rows_and_damage(tmp_path / "out") == ([], [])
    with rmqfast.open_store(tmp_path / "out", mode="a", options=rmqfast.AppendOptions(file_size=4096)) as store:
        assert store.append(rmqfast.Message("T", b"x")).queue_offset == 0


def test_sizes_can_be_given(tmp_path: Path) -> None:
    small = small_store(tmp_path / "store")
    sizes = rmqfast.AppendOptions(file_size=8192, queue_file_size=400, index_slots=10, index_entries=30)
    opened(small.path).export(tmp_path / "out", options=sizes)
    info = opened(tmp_path / "out").info()
    assert (info.commit_log_file_size, info.consume_queue_file_size) == (8192, 400)
    assert still(rows_of(opened(tmp_path / "out").scan("T", way="queue"))) == still(small.rows)
    tiny = rmqfast.AppendOptions(file_size=200, queue_file_size=400, index_slots=10, index_entries=30)
    with pytest.raises(ArgumentError, match="file_size"):
        opened(small.path).export(tmp_path / "tiny", options=tiny)
    assert not list(tmp_path.glob("tiny*"))


def test_a_place_that_is_taken_or_within_the_store_is_refused(tmp_path: Path) -> None:
    small = small_store(tmp_path / "store")
    before = files_of(small.path)
    (tmp_path / "there").mkdir()
    (tmp_path / "there.jsonl").touch()
    (tmp_path / "mine.partial").mkdir()
    (tmp_path / "mine.partial" / "notes").touch()
    store = opened(small.path)
    for out in ("there", "there.jsonl", "mine", "store/out", "store/commitlog/out"):
        with pytest.raises(ArgumentError, match="out"):
            store.export(tmp_path / out)
    with pytest.raises(StoreNotFoundError):
        store.export(tmp_path / "nowhere" / "out")
    with pytest.raises(StoreNotFoundError):
        store.export(tmp_path / "nowhere" / "out.jsonl")
    with pytest.raises(ArgumentError, match="format"):
        store.export(tmp_path / "out", format="csv")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="path for a store"):
        store.export(io.StringIO(), format="store")
    assert files_of(small.path) == before
    assert {file.name for file in tmp_path.iterdir()} == {"store", "there", "there.jsonl", "mine.partial"}


@pytest.mark.parametrize("name", ["out", "out.jsonl"])
def test_two_do_not_export_to_one_place(tmp_path: Path, name: str) -> None:
    small = small_store(tmp_path / "store")
    refused = []

    def other(done: int, total: int) -> None:
        with pytest.raises(StoreBusyError) as error:
            opened(small.path).export(tmp_path / name)
        refused.append(error)

    opened(small.path).export(tmp_path / name, progress=other)
    assert refused
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([name, "store"])


def test_a_store_that_is_appended_to_is_exported_as_it_is(tmp_path: Path) -> None:
    sizes = rmqfast.AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=100, index_entries=300)
    with rmqfast.open_store(tmp_path / "store", mode="a", options=sizes) as store:
        for n in range(50):
            store.append(rmqfast.Message("T", b"%d" % n, keys=f"k{n}"))
        assert store.export(tmp_path / "out").rows == 50
        reader = opened(tmp_path / "store")
        reader.topics()
        store.append(rmqfast.Message("T", b"later"))
        assert reader.export(tmp_path / "before").rows == 50
    check_sound(tmp_path / "out")
    check_sound(tmp_path / "before")
