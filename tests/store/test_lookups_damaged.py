"""Look-ups and checks of stores that lack something, or in which something was flipped."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

import rmqfast
from rmqfast import GetMessageStatus, errors
from tests import golden_stores
from tests.golden_stores import PathOf

NAME = "basic-4.9.4"


@pytest.fixture
def path(golden_store_copy: PathOf) -> Path:
    return golden_store_copy(NAME)


def flip(path: Path, at: int, content: bytes | None = None) -> None:
    data = bytearray(path.read_bytes())
    replacement = content if content is not None else bytes([data[at] ^ 1])
    data[at : at + len(replacement)] = replacement
    path.write_bytes(data)


def found_by(path: Path) -> list[tuple[str, int]]:
    damage = rmqfast.open_store(path).verify().damage
    return [(str(Path(d.file).relative_to(path)), d.offset) for d in damage]


def keys_of_some(path: Path) -> list[tuple[str, str, list[int]]]:
    lines = golden_stores.expected(NAME)["index"][::151]
    with rmqfast.open_store(path) as store:
        return [(x["topic"], x["key"], [m.physical_offset for m in store.query(x["topic"], x["key"])]) for x in lines]


def test_a_store_without_its_consume_queues_has_the_same_topics_and_messages(path: Path) -> None:
    before = rmqfast.open_store(path)
    wanted, first = before.topics(), before.get("fx_q1", 0, 700, max_messages=90)
    shutil.rmtree(path / "consumequeue")
    store = rmqfast.open_store(path)
    assert store.topics() == wanted
    assert store.get("fx_q1", 0, 700, max_messages=90) == first
    assert store.get("fx_q1", 9, 0).status is GetMessageStatus.NO_MESSAGE_IN_QUEUE
    report = store.verify()
    assert (report.ok, report.units, report.unlisted) == (True, 0, 2779)
    assert "no consume queues" in report.notes[0]
    with pytest.raises(errors.UnknownTopicError, match="fx_q1"):
        store.get("fx_qq1", 0, 0)


def test_consume_queues_in_rocksdb_are_read_through_the_log(path: Path) -> None:
    wanted = rmqfast.open_store(path).topics()
    shutil.rmtree(path / "consumequeue")
    (path / "consumequeue").mkdir()
    (path / "consumequeue" / "CURRENT").write_text("MANIFEST-000005\n")
    store = rmqfast.open_store(path)
    assert store.topics() == wanted
    assert [m.queue_offset for m in store.get("fx_q1", 0, 1250).messages] == list(range(1250, 1259))
    assert store.offset_for_time("fx_q1", 0, 0, rule="4.9.4") == 0
    assert (store.info().queue_kind, store.info().version) == ("rocksdb", "5.x")


@pytest.mark.parametrize("kept", [0, 1])
def test_without_an_index_the_log_is_read_for_a_key(path: Path, kept: int) -> None:
    wanted = keys_of_some(path)
    assert any(offsets for _, _, offsets in wanted)
    for file in sorted((path / "index").iterdir())[kept:]:
        file.unlink()
    assert keys_of_some(path) == wanted


def test_topics_are_read_from_the_backup_where_the_file_is_garbage(path: Path) -> None:
    config = path / "config" / "topics.json"
    shutil.copy(config, config.with_name("topics.json.bak"))
    known = rmqfast.open_store(path).info()
    config.write_text("{]")
    store = rmqfast.open_store(path)
    info = store.info()
    assert (info.topics, known.notes) == (known.topics, [])
    assert "topics.json.bak was read instead" in info.notes[0]
    assert found_by(path) == [("config/topics.json", 0)]
    # a topic that has a configuration and no message
    assert store.get("BenchmarkTest", 0, 0).status is GetMessageStatus.NO_MESSAGE_IN_QUEUE


def test_a_topics_file_that_is_garbage_stops_no_reader(path: Path) -> None:
    for name in ("topics.json", "topics.json.bak"):
        (path / "config" / name).write_bytes(b"\0\xff")
    store = rmqfast.open_store(path)
    assert store.get("fx_q1", 0, 0).status is GetMessageStatus.FOUND
    assert "topics.json" in store.info().notes[0]


def test_dledger_is_refused(path: Path) -> None:
    (path / "dledger-n0").mkdir()
    with pytest.raises(errors.UnsupportedStoreError, match="DLedger"):
        rmqfast.open_store(path)


def test_a_flipped_body_is_damage_and_the_next_message_is_given(path: Path) -> None:
    message = rmqfast.open_store(path).get("fx_q1", 0, 3).messages[0]
    flip(path / "commitlog" / f"{0:020d}", message.physical_offset + 90)
    store = rmqfast.open_store(path)
    result = store.get("fx_q1", 0, 3, max_messages=2)
    assert [m.queue_offset for m in result.messages] == [4, 5]
    assert [(d.offset, d.length) for d in result.damage] == [(message.physical_offset, message.store_size)]
    assert found_by(path) == [(f"commitlog/{0:020d}", message.physical_offset)]
    with pytest.raises(errors.CorruptError, match="crc"):
        store.message_at(message.physical_offset)


@pytest.mark.parametrize("key", ["key", "id"])
def test_a_message_is_found_whose_time_is_before_all_times(path: Path, key: str) -> None:
    message = next(each for each in rmqfast.open_store(path).get("fx_q1", 0, 3).messages if each.keys)
    flip(path / "commitlog" / f"{0:020d}", message.physical_offset + 56, b"\xff")
    store = rmqfast.open_store(path)
    found = (
        [store.message_by_id(message.msg_id)] if key == "id" else store.query("fx_q1", (message.keys or "").split()[0])
    )
    assert message.physical_offset in [each.physical_offset for each in found]
    assert min(each.store_timestamp for each in found) < 0


@pytest.mark.parametrize(("at", "content"), [(0, struct.pack(">q", 335)), (8, None), (12, None), (0, bytes(20))])
def test_a_wrong_unit_is_found_and_nothing_else(path: Path, at: int, content: bytes | None) -> None:
    file = f"consumequeue/fx_q1/0/{4000:020d}"
    flip(path / file, 7 * 20 + at, content)
    assert found_by(path) == [(file, 4000 + 7 * 20)]


def test_a_consume_queue_file_that_is_gone_is_found(path: Path) -> None:
    (path / f"consumequeue/fx_q1/0/{4000:020d}").unlink()
    store = rmqfast.open_store(path)
    # the log has what the queue lacks; a broker would go on at 300
    result = store.get("fx_q1", 0, 200)
    assert [message.queue_offset for message in result.messages] == [*range(200, 232)]
    assert (result.status, result.next_begin_offset) == (GetMessageStatus.FOUND, 232)
    # 100 records that no unit lists, and the gap where their units were
    report = store.verify()
    assert len([d for d in report.damage if "does not list" in d.reason]) == 100
    assert [d.length for d in report.damage if "expected a file" in d.reason] == [2000]


def test_units_at_the_end_that_were_lost_are_found(path: Path) -> None:
    last = max((path / "consumequeue/fx_q1/0").iterdir())
    flip(last, 0, bytes(last.stat().st_size))
    report = rmqfast.open_store(path).verify()
    assert len(report.damage) == 59
    assert {d.file[-20:] for d in report.damage} <= {f"{0:020d}", f"{1 << 20:020d}", f"{2 << 20:020d}"}


def test_a_flipped_index_entry_is_found(path: Path) -> None:
    index = min((path / "index").iterdir())
    # entry 5: its physical offset
    flip(index, 40 + 4 * 1000 + 20 * 5 + 11)
    assert found_by(path) == [(f"index/{index.name}", 40 + 4 * 1000 + 20 * 5)]


def test_progress_is_told_and_may_end_the_check(path: Path) -> None:
    calls: list[tuple[int, int]] = []
    rmqfast.open_store(path).verify(progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] > 0
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)

    def stop(done: int, total: int) -> None:
        raise RuntimeError(f"stopped at {done} of {total}")

    with pytest.raises(RuntimeError, match="stopped at"):
        rmqfast.open_store(path).verify(progress=stop)


def test_nothing_is_written_by_any_look_up(path: Path) -> None:
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in path.rglob("*")}
    store = rmqfast.open_store(path)
    store.verify()
    store.info()
    store.query("fx_q1", "k14")
    store.message_by_id("7F00000100005212000000000000014E")
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in path.rglob("*")} == before
