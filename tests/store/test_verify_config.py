"""What a check says of a checkpoint and of a configuration that do not agree with log, queues and index."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, Message, VerifyReport
from rmqfast.store import ConsumerOffsetTable, DelayOffsetTable, TopicConfig, TopicConfigTable
from tests.golden_stores import PathOf

SMALL = AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=1000, index_entries=4000)
CHECKPOINT = ("physicMsgTimestamp", "logicsMsgTimestamp", "indexMsgTimestamp")


@pytest.fixture
def path(golden_store_copy: PathOf) -> Path:
    return golden_store_copy("offsets-4.9.4")


def check(path: Path) -> VerifyReport:
    return rmqfast.open_store(path).verify()


def problem(path: Path) -> tuple[str, str]:
    """The one thing that is wrong: file and reason."""
    [damage] = check(path).damage
    return str(Path(damage.file).relative_to(path)), damage.reason


def note(path: Path) -> str:
    """The one note on a store that has nothing wrong."""
    report = check(path)
    assert (report.ok, len(report.notes)) == (True, 1), report
    return report.notes[0].replace(f"{path}/", "")


def set_checkpoint(path: Path, times: Sequence[int | None]) -> None:
    file = path / "checkpoint"
    page = file.read_bytes()
    old = struct.unpack_from(">3q", page)
    new = [was if time is None else time for was, time in zip(old, times, strict=True)]
    file.write_bytes(struct.pack(">3q", *new) + page[24:])


def last_time(path: Path) -> int:
    last = rmqfast.open_store(path).info().last_store_timestamp
    assert last is not None
    return last


def test_a_checkpoint_that_vouches_for_more_than_the_log_has_is_a_problem(path: Path) -> None:
    last = last_time(path)
    set_checkpoint(path, [last + 3001, last + 4000, None])
    expected = f"timestamps: expected at most {last}, the last message's, got {last + 1}"
    assert problem(path) == ("checkpoint", expected)
    set_checkpoint(path, [last + 3000, last, None])
    assert note(path) == f"checkpoint: physicMsgTimestamp: expected 0 to {last}, the last message's, got {last + 3000}"


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("value", [-1, 1 << 62])
def test_one_time_of_the_checkpoint_that_is_off_is_told(path: Path, which: int, value: int) -> None:
    set_checkpoint(path, [value if n == which else None for n in range(3)])
    expected = f"checkpoint: {CHECKPOINT[which]}: expected 0 to {last_time(path)}, the last message's, got {value}"
    assert note(path) == expected


def test_a_checkpoint_in_the_future_is_a_problem_of_an_empty_log_too(tmp_path: Path) -> None:
    rmqfast.open_store(tmp_path, mode="a", options=SMALL).close()
    future = int(time.time() * 1000) + 3_600_000
    assert check(tmp_path).ok
    set_checkpoint(tmp_path, [future, future, None])
    expected = f"timestamps: expected at most the present time, got {future - 3000}"
    assert problem(tmp_path) == ("checkpoint", expected)


def test_a_checkpoint_that_is_cut_off_is_a_problem_and_one_that_is_gone_is_told(path: Path) -> None:
    (path / "checkpoint").write_bytes(bytes(23))
    assert problem(path) == ("checkpoint", "checkpoint at +23: expected at least 24, got 23")
    (path / "checkpoint").unlink()
    assert "a broker starts a new one" in note(path)
    (path / "checkpoint").mkdir()
    assert problem(path) == ("checkpoint", "expected a file")


def test_an_index_that_ends_before_the_checkpoint_says_is_told(golden_store_copy: PathOf) -> None:
    path = golden_store_copy("basic-4.9.4")
    [*_, newest] = sorted((path / "index").iterdir())
    end = struct.unpack_from(">2q", newest.read_bytes())[1]
    set_checkpoint(path, [None, None, end])
    assert check(path).notes == []
    newest.unlink()
    assert f"indexMsgTimestamp: {end}, but the newest index file ends at" in note(path)
    for file in (path / "index").iterdir():
        file.unlink()
    assert f"indexMsgTimestamp: {end}, but no index file" in note(path)


def test_topics_that_are_not_configured_and_queues_that_no_consumer_reads_are_told(path: Path) -> None:
    topics = TopicConfigTable.load(path)
    topics.remove("fx_conflict", now=1)
    topics.put(TopicConfig(topic_name="fx_plain", read_queue_nums=3, write_queue_nums=2), now=1)
    topics.save(path)
    unknown, unseen = check(path).notes
    assert unknown.endswith("topics.json: expected all topics that have queues, got none of this name: fx_conflict")
    assert unseen.endswith("no consumer reads these queues: fx_plain 3 (read 3, write 2)")
    assert check(path).ok


def test_a_store_whose_topics_are_configured_nowhere_is_sound(tmp_path: Path) -> None:
    small = AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=16, index_entries=40)
    with rmqfast.open_store(tmp_path, mode="a", options=small) as store:
        for n in range(100):
            store.append(Message("T", b"x", keys=f"k{n}"))
    assert len(list((tmp_path / "index").iterdir())) > 2
    assert (check(tmp_path).ok, check(tmp_path).notes) == (True, [])


@pytest.mark.parametrize(("queue", "offset", "most"), [(2, 19, 18), (2, -1, 18), (9, 1, 0), (1, (1 << 63) - 1, 18)])
def test_an_offset_outside_its_queue_is_a_problem(path: Path, queue: int, offset: int, most: int) -> None:
    assert rmqfast.open_store(path).topics()["fx_plain"][2] == (0, 18)
    offsets = ConsumerOffsetTable.load(path)
    offsets.commit("fx_plain", "fx_all", queue, offset)
    offsets.save(path)
    expected = f"fx_plain@fx_all queue {queue}: expected 0 to {most}, the queue's max offset, got {offset}"
    assert problem(path) == ("config/consumerOffset.json", f"offsetTable {expected}")


def test_beside_a_broker_or_after_a_crash_offsets_may_be_ahead(path: Path) -> None:
    offsets = ConsumerOffsetTable.load(path)
    offsets.commit("fx_plain", "fx_all", 2, 19)
    offsets.save(path)
    (path / "abort").touch()
    assert any("queue 2: expected 0 to 18" in note for note in check(path).notes)
    assert check(path).ok
    offsets.commit("fx_plain", "fx_all", 2, -3)
    offsets.save(path)
    assert "got -3" in problem(path)[1]


def test_offsets_of_unknown_topics_and_keys_that_are_none_are_told(path: Path) -> None:
    file = path / "config" / "consumerOffset.json"
    text = file.read_text().replace(
        '"offsetTable":{', '"offsetTable":{"gone@g":{0:7},"a@b@c":{0:1},"alone":{0:1},"@g":{},'
    )
    file.write_text(text)
    odd, unknown = check(path).notes
    assert odd.endswith("expected keys topic@group; a broker passes over others: a@b@c, alone, @g")
    assert unknown.endswith("expected a topic of the store, got offsets of one that is not known: gone@g")
    assert check(path).ok


def test_a_note_lists_ten_names_and_counts_the_others(path: Path) -> None:
    offsets = ConsumerOffsetTable.load(path)
    for n in range(25):
        offsets.commit(f"gone{n:02d}", "g", 0, 1)
    offsets.save(path)
    assert note(path).endswith("gone09@g, and 15 more")


def test_delay_offsets_outside_their_queue_are_told(golden_store_copy: PathOf) -> None:
    path = golden_store_copy("delaytx-4.9.4")
    assert check(path).notes == []
    delays = DelayOffsetTable.load(path)
    most = delays[3]
    for level, offset in ((3, most + 1), (17, 1), (0, 0), (1, -1)):
        delays.commit(level, offset)
    delays.save(path)
    told = f"level 0: expected 0 to 0, got 0, level 1: expected 0 to {delays[2]}, got -1"
    assert note(path).endswith(
        f"{told}, level 3: expected 0 to {most}, got {most + 1}, level 17: expected 0 to 0, got 1"
    )


def test_a_configuration_that_cannot_be_read_is_a_problem_with_and_without_its_backup(path: Path) -> None:
    file, backup = path / "config" / "subscriptionGroup.json", path / "config" / "subscriptionGroup.json.bak"
    file.write_bytes(b"{}")
    reason = "expected the member subscriptionGroupTable, got none"
    assert problem(path) == ("config/subscriptionGroup.json", f"{reason}; {backup.name} was read instead")
    assert check(path).config_files == 5
    backup.write_bytes(b"")
    assert problem(path) == (
        "config/subscriptionGroup.json",
        f"{reason}; {backup.name}: empty; a broker starts without it",
    )
    file.unlink()
    assert problem(path)[1] == f"missing; {backup.name}: empty; a broker starts without it"
    assert check(path).config_files == 4


def test_a_backup_alone_is_told_and_one_that_cannot_be_read_too(path: Path) -> None:
    file, backup = path / "config" / "consumerFilter.json", path / "config" / "consumerFilter.json.bak"
    whole = file.read_bytes()
    file.unlink()
    assert note(path) == f"config/{file.name}: missing; {backup.name} was read instead"
    file.write_bytes(whole)
    backup.write_bytes(b"garbage")
    assert note(path).startswith(
        f"config/{backup.name}: line 1 column 1: expected value; there is nothing to fall back"
    )
