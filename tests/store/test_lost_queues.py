"""Stores of which a consume queue, or the end of one, is gone: each message is read all the same, from the log."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, Message, errors
from rmqfast.message import Damage
from rmqfast.tables import ingest
from tests.store.scanned import pull_all

COUNT = 475
QUEUES = 4
#: Files of 50 units, so that each queue of `orders` has three.
OPTIONS = AppendOptions(file_size=1 << 17, queue_file_size=1000, index_slots=16, index_entries=4000)
ORDERS = "consumequeue/orders"
LOST = "consumequeue/orders/1"
WHOLE = {"orders": {0: (0, 119), 1: (0, 119), 2: (0, 119), 3: (0, 118)}, "idle": {0: (0, 5)}, "other": {0: (0, 475)}}


def append(path: Path) -> None:
    with rmqfast.open_store(path, mode="a", options=OPTIONS, clock=iter(range(10**12, 10**13)).__next__) as store:
        for n in range(5):
            store.append(Message("idle", b"once", queue_id=0, keys=f"i{n}"))
        for n in range(COUNT):
            store.append(Message("orders", b"body" * 20, queue_id=n % QUEUES, keys=f"k{n}"))
            store.append(Message("other", b"x" * 100, queue_id=0))


def configure(path: Path, queue_nums: dict[str, int]) -> None:
    topics = {
        name: {"topicName": name, "readQueueNums": count, "writeQueueNums": count, "perm": 6}
        for name, count in queue_nums.items()
    }
    (path / "config").mkdir(exist_ok=True)
    (path / "config/topics.json").write_text(json.dumps({"topicConfigTable": topics}))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "store"
    append(path)
    return path


@pytest.fixture(params=["configured", "without configuration"])
def path(request: pytest.FixtureRequest, written: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "store"
    shutil.copytree(written, copy)
    if request.param == "configured":
        configure(copy, {"orders": QUEUES, "other": 1, "idle": 1})
    return copy


def files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def used(directory: Path) -> list[Path]:
    return [file for file in files(directory) if any(file.read_bytes())]


def remove_files(directory: Path) -> None:
    for file in files(directory):
        file.unlink()


def empty_files(directory: Path) -> None:
    for file in files(directory):
        file.write_bytes(b"")


def zero_files(directory: Path) -> None:
    for file in files(directory):
        file.write_bytes(bytes(file.stat().st_size))


def zero_last_units(directory: Path, count: int) -> None:
    last = used(directory)[-1]
    content = bytearray(last.read_bytes())
    end = len(content.rstrip(b"\0")) // 20 * 20 + 20
    content[max(0, end - 20 * count) : end] = bytes(min(end, 20 * count))
    last.write_bytes(content)


def cut_last_file(directory: Path) -> None:
    with used(directory)[-1].open("r+b") as file:
        file.truncate(60)


def each(harm: Callable[[Path], object], paths: Iterable[Path]) -> None:
    for path in list(paths):
        harm(path)


HARMS: dict[str, Callable[[Path], object]] = {
    "the directory is gone": lambda path: shutil.rmtree(path / LOST),
    "the directory is empty": lambda path: remove_files(path / LOST),
    "all files are empty": lambda path: empty_files(path / LOST),
    "all files are zeroes": lambda path: zero_files(path / LOST),
    "the last unit is zeroes": lambda path: zero_last_units(path / LOST, 1),
    "the last units are zeroes": lambda path: zero_last_units(path / LOST, 9),
    "the last file is gone": lambda path: used(path / LOST)[-1].unlink(),
    "the last file is cut": lambda path: cut_last_file(path / LOST),
    "the last two files are gone": lambda path: each(Path.unlink, used(path / LOST)[1:]),
    "the first file is gone": lambda path: used(path / LOST)[0].unlink(),
    "the first file is empty": lambda path: used(path / LOST)[0].write_bytes(b""),
    "the middle file is gone": lambda path: used(path / LOST)[1].unlink(),
    "two queues are gone": lambda path: each(shutil.rmtree, files(path / ORDERS)[::3]),
    "the last queue is gone": lambda path: shutil.rmtree(path / ORDERS / "3"),
    "all queues are short": lambda path: each(lambda queue: zero_last_units(queue, 3), files(path / ORDERS)),
    "the topic is gone": lambda path: shutil.rmtree(path / ORDERS),
    "the topic is empty": lambda path: each(shutil.rmtree, files(path / ORDERS)),
    "the idle topic's queue is zeroes": lambda path: zero_files(path / "consumequeue/idle/0"),
    "the idle topic is gone": lambda path: shutil.rmtree(path / "consumequeue/idle"),
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_lost_queue_costs_no_message_and_no_bound(path: Path, tmp_path: Path, harm: Callable[[Path], object]) -> None:
    harm(path)
    store = rmqfast.open_store(path)
    assert store.topics() == WHOLE
    for way in (None, "log", "queue"):
        scan = store.scan("orders", way=way, columns=["queue_id", "queue_offset"])
        rows = [(row["queue_id"], row["queue_offset"]) for row in scan.to_arrow().to_pylist()]
        assert rows == [(n % QUEUES, n // QUEUES) for n in range(COUNT)]
        assert scan.damage == []
    for topic, queues in WHOLE.items():
        for queue_id, (_, count) in queues.items():
            one = store.scan(topic, way="queue", queue_ids=[queue_id], columns=["queue_offset"])
            assert one.to_arrow()["queue_offset"].to_pylist() == list(range(count))
            assert pull_all(store, topic, queue_id) == (list(range(count)), [])
            assert store.offset_for_time(topic, queue_id, "2100-01-01") == count
    assert store.earliest_time("orders", 1) == store.get("orders", 1, 0).messages[0].store_timestamp
    assert [message.queue_offset for message in store.query("orders", "k101")] == [25]
    report = store.export(tmp_path / "copy", "orders")
    assert (report.rows, report.ok, report.unlisted) == (COUNT, True, 0)
    assert rmqfast.open_store(tmp_path / "copy").topics() == {"orders": WHOLE["orders"]}
    assert ingest(store, tmp_path / "parquet", ["orders"]).rows == COUNT
    assert store.info().topics == 3
    assert any("consume queues do not list messages that the log has" in note for note in store.info().notes)
    assert not store.verify().ok


def test_a_sound_store_misses_nothing(path: Path) -> None:
    store = rmqfast.open_store(path)
    assert store.topics() == WHOLE
    assert store.info().notes == []
    assert store.verify().ok


def test_a_lost_record_within_a_lost_queue_is_told(path: Path) -> None:
    store = rmqfast.open_store(path)
    place = store.get("orders", 1, 60).messages[0].physical_offset
    log = path / "commitlog" / f"{place // OPTIONS.file_size * OPTIONS.file_size:020}"
    with log.open("r+b") as file:
        file.seek(place % OPTIONS.file_size)
        file.write(bytes(8))
    shutil.rmtree(path / LOST)
    scan = rmqfast.open_store(path).scan("orders", way="queue", columns=["queue_id", "queue_offset"])
    with pytest.warns(rmqfast.DamageWarning, match="expected a record"):
        table = scan.to_arrow()
    assert table.num_rows == COUNT - 1
    assert [entry.offset for entry in scan.damage] == [place]
    hole = rmqfast.open_store(path).get("orders", 1, 60)
    assert (hole.messages, hole.next_begin_offset) == ([], 61)
    assert [entry.offset for entry in hole.damage] == [place]


@pytest.mark.parametrize("file", [0, 1])
def test_a_pull_tells_of_messages_in_an_emptied_file_that_no_unit_lists(path: Path, file: int) -> None:
    empty = sorted((path / "commitlog").iterdir())[file]
    empty.write_bytes(b"")
    zero_files(path / LOST)
    store = rmqfast.open_store(path)
    found: set[int] = set()
    damage: list[Damage] = []
    at, end = 0, 1
    while at < end:
        result = store.get("orders", 1, at, max_messages=32)
        found |= {message.queue_offset for message in result.messages}
        damage += result.damage
        at, end = result.next_begin_offset, result.max_offset
    assert 0 < len(found) < COUNT
    assert damage[0].file == str(empty)
    assert damage[0].reason.startswith("expected " + ("a file of the commit log", "the commit log to end at")[file])


@pytest.mark.parametrize("text", ["{", '{"removedTopics": 5}', '{"removedTopics": {"orders": {"at": 1}}}'])
def test_a_scan_tells_that_nobody_knows_which_topics_were_removed(written: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "store"
    shutil.copytree(written, path)
    shutil.rmtree(path / LOST)
    (path / "config").mkdir(exist_ok=True)
    (path / "config/removedTopics.json").write_text(text)
    with pytest.raises(errors.CorruptError, match=r"config/removedTopics\.json"):
        rmqfast.open_store(path).scan("orders", way="queue", columns=["queue_id"]).to_arrow()


def test_messages_of_a_topic_that_was_deleted_do_not_come_back(written: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(written, path)
    shutil.rmtree(path / "consumequeue/orders")
    configure(path, {"other": 1, "idle": 1})
    store = rmqfast.open_store(path)
    assert store.topics() == {"idle": WHOLE["idle"], "other": WHOLE["other"]}
    with pytest.raises(errors.UnknownTopicError, match="orders"):
        store.scan("orders")
    assert store.scan("idle", way="queue").to_arrow().num_rows == 5
    report = store.verify()
    assert (report.ok, report.forgotten) == (True, COUNT)


def test_messages_of_an_earlier_generation_of_a_topic_are_not_missing(tmp_path: Path) -> None:
    path = tmp_path / "store"
    append(path)
    shutil.rmtree(path / "consumequeue/orders")
    configure(path, {"orders": QUEUES, "other": 1, "idle": 1})
    (path / "config/removedTopics.json").write_text(
        json.dumps({"removedTopics": {"orders": {"at": 10**13, "before": rmqfast.open_store(path).info().max_offset}}})
    )
    with rmqfast.open_store(path, mode="a", options=OPTIONS) as writer:
        writer.append(Message("orders", b"anew", queue_id=2))
        writer.append(Message("other", b"x", queue_id=0))
    store = rmqfast.open_store(path)
    assert store.topics()["orders"] == {2: (0, 1)}
    assert store.scan("orders", way="queue").to_arrow()["body"].to_pylist() == [b"anew"]
    # who lost all queues has them from the log
    shutil.rmtree(path / "consumequeue")
    store = rmqfast.open_store(path)
    assert store.topics()["orders"] == {2: (0, 1)}
    assert [message.body for message in store.get("orders", 2, 0).messages] == [b"anew"]
    assert store.scan("orders").to_arrow()["body"].to_pylist() == [b"anew"]
