"""A queue that has lost its files does not begin anew when the store is appended to: no queue offset is given twice."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, Message
from rmqfast.errors import CorruptError
from rmqfast.store import find_missing_end, repair
from tests.store.scanned import pull_all, table_of
from tests.store.small_store import copy_open_store

SMALL = AppendOptions(
    file_size=1 << 12, queue_file_size=400, index_slots=16, index_entries=100, zone_offset_ms=0, multi_dispatch=True
)
COUNT = 60
LIGHT = "%LMQ%light"


def fill(store: rmqfast.WritableStore) -> None:
    for n in range(3):
        store.append(Message("idle", b"once %d" % n))
    for n in range(COUNT):
        store.append(
            Message("orders", b"x" * 100, keys=f"k{n}", properties={"INNER_MULTI_DISPATCH": LIGHT} if n == 7 else {})
        )


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("closed") / "store"
    with rmqfast.open_store(path, mode="a", options=SMALL, clock=iter(range(10**12, 10**13)).__next__) as store:
        fill(store)
    return path


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of one that is open, and was never closed."""
    root = tmp_path_factory.mktemp("killed")
    with rmqfast.open_store(
        root / "live", mode="a", options=SMALL, clock=iter(range(10**12, 10**13)).__next__
    ) as store:
        fill(store)
        store.flush()
        copy_open_store(store.path, root / "store")
    return root / "store"


def no_ends(path: Path) -> None:
    """As RocketMQ leaves a store: then the units tell, which cover the log."""
    (path / "queue.ends").unlink(missing_ok=True)


def flip_ends(path: Path) -> None:
    ends = path / "queue.ends"
    content = bytearray(ends.read_bytes())
    content[20] ^= 1
    ends.write_bytes(content)


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


IDLE = Path("consumequeue/idle/0") / ("0" * 20)
HARMS: dict[str, Callable[[Path], object]] = {
    "the directory is gone": lambda path: shutil.rmtree(path / "consumequeue/idle"),
    "the file is gone": lambda path: (path / IDLE).unlink(),
    "the file is empty": lambda path: (path / IDLE).write_bytes(b""),
    "the file is zeroes": lambda path: (path / IDLE).write_bytes(bytes(400)),
    "the last unit is zeroes": lambda path: overwrite(path / IDLE, 40, bytes(20)),
    "the last unit has a negative size": lambda path: overwrite(path / IDLE, 48, b"\x80\0\0\0"),
    "the last unit has a large size": lambda path: overwrite(path / IDLE, 49, b"\x04"),
    "the last unit leads elsewhere": lambda path: overwrite(path / IDLE, 40, bytes(8)),
    "the last unit leads over the end": lambda path: overwrite(path / IDLE, 40, b"\x10"),
    "the file has another name": lambda path: (path / IDLE).rename(path / IDLE.with_name("0" * 19 + "7")),
    "all queues are gone": lambda path: shutil.rmtree(path / "consumequeue"),
}


def check_next(path: Path, queues: dict[tuple[str, int], int]) -> None:
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        given = {name: store.append(Message(name[0], b"new", queue_id=name[1])).queue_offset for name in queues}
    assert given == queues
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        assert store.recovery is None


@pytest.mark.parametrize("ends", [None, no_ends, flip_ends])
@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_queue_that_has_lost_units_goes_on(
    closed: Path, tmp_path: Path, harm: Callable[[Path], object], ends: Callable[[Path], None] | None
) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    if ends is not None:
        ends(path)
    harm(path)
    check_next(path, {("idle", 0): 3, ("orders", 0): COUNT})
    rows = table_of(rmqfast.open_store(path).scan("idle", way="queue", columns=["queue_offset", "body"])).to_pylist()
    assert [row["queue_offset"] for row in rows] == [0, 1, 2, 3]


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_so_does_one_of_a_store_that_crashed(killed: Path, tmp_path: Path, harm: Callable[[Path], object]) -> None:
    path = tmp_path / "store"
    shutil.copytree(killed, path)
    harm(path)
    check_next(path, {("idle", 0): 3, ("orders", 0): COUNT})


def test_a_queue_whose_messages_are_unreadable_is_refused(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    overwrite(min((path / "commitlog").iterdir()), 0, bytes(300))
    shutil.rmtree(path / "consumequeue/idle")
    assert any("gave the offsets before 3" in note for note in rmqfast.open_store(path).info().notes)
    with pytest.raises(CorruptError, match="so nothing is cut"):
        rmqfast.open_store(path, mode="a", options=SMALL)


def test_so_does_one_whose_messages_retention_has_removed(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    min((path / "commitlog").iterdir()).unlink()
    shutil.rmtree(path / "consumequeue/idle")
    check_next(path, {("idle", 0): 3})


def test_so_does_a_light_queue(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    shutil.rmtree(path / "consumequeue" / LIGHT)
    assert any(LIGHT in note for note in rmqfast.open_store(path).info().notes)
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        assert store.recovery is not None
        assert store.topics()[LIGHT] == {0: (0, 1)}


@pytest.mark.parametrize("length", [20, 380, 390, 420, 433])
def test_so_does_one_whose_file_has_another_length(closed: Path, tmp_path: Path, length: int) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    file = path / "consumequeue" / LIGHT / "0" / ("0" * 20)
    file.write_bytes(file.read_bytes().ljust(length, b"x")[:length])
    check_next(path, {("orders", 0): COUNT})
    with rmqfast.open_store(path) as store:
        assert store.topics()[LIGHT] == {0: (0, 1)}
        assert len(store.get(LIGHT, 0, 0).messages) == 1


def test_a_recovery_whose_index_leads_behind_the_log_s_end_makes_it_anew(tmp_path: Path) -> None:
    path, options = tmp_path / "store", replace(SMALL, index_entries=20)
    with rmqfast.open_store(
        tmp_path / "live", mode="a", options=options, clock=iter(range(10**12, 10**13)).__next__
    ) as store:
        fill(store)
        store.flush()
        copy_open_store(store.path, path)
    row = table_of(rmqfast.open_store(path).scan("orders", columns=["physical_offset"])).to_pylist()[-10]
    base, at = divmod(row["physical_offset"], SMALL.file_size)
    overwrite(path / "commitlog" / f"{base * SMALL.file_size:020}", at + 4, b"\0")
    # it does not say any more that the log was flushed
    overwrite(path / "checkpoint", 0, (10**12 - 1).to_bytes(8, "big"))
    with rmqfast.open_store(path, mode="a", options=options) as store:
        assert store.recovery is not None
        assert store.recovery.cut_bytes > 0
        place = store.append(Message("orders", b"new", keys="new"))
        assert [message.physical_offset for message in store.query("orders", "new")] == [place.physical_offset]


def test_a_unit_of_another_queue_misleads_no_search_by_time(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    times = [row["store_timestamp"] for row in table_of(rmqfast.open_store(path).scan("orders")).to_pylist()]
    overwrite(path / "consumequeue/orders/0/00000000000000000400", 10 * 20, (path / IDLE).read_bytes()[:20])
    store = rmqfast.open_store(path)
    found = [store.offset_for_time("orders", 0, time) for time in times]
    # message 30 may be the first one: who reads there hears of it
    assert found == [n - (n == 31) for n in range(COUNT)]
    assert store.get("orders", 0, 30).damage


def test_a_pull_tells_of_units_that_are_gone_between_others(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    # units of all queues together cover the log still
    moved = path / "consumequeue/idle/1"
    moved.mkdir()
    (path / "consumequeue/orders/0/00000000000000000400").rename(moved / "00000000000000000400")
    found, damage = pull_all(rmqfast.open_store(path), "orders")
    assert found == [*range(20), *range(40, COUNT)]
    assert [place.reason for place in damage] == [
        "expected units of messages 20 to 40 of queue 0 of topic orders, got none"
    ]


@pytest.mark.parametrize("count", [19, 20, 21])
def test_a_queue_of_full_files_goes_on_where_all_of_the_log_is_given_up(tmp_path: Path, count: int) -> None:
    path = tmp_path / "store"
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        store.append_many([Message("orders", b"x")] * count)
    shutil.rmtree(path / "commitlog")
    missing = find_missing_end(path)
    assert missing is not None
    assert repair(path, options=SMALL, cut_at=missing.log_end).left_out == count
    check_next(path, {("orders", 0): count})


def test_a_store_that_was_removed_but_for_its_ends_begins_anew(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    for name in ("commitlog", "consumequeue", "index"):
        shutil.rmtree(path / name)
        (path / name).mkdir()
    (path / "checkpoint").unlink()
    check_next(path, {("orders", 0): 0, ("idle", 0): 0})


def test_ends_ahead_of_a_log_that_has_lost_its_files_are_told(closed: Path, tmp_path: Path) -> None:
    """Without a checkpoint, and with queues that lost their files as well, nothing else tells of the loss."""
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    (path / "abort").touch()
    (path / "checkpoint").unlink()
    queues = [file for file in (path / "consumequeue").rglob("0*") if file.is_file() and int(file.name)]
    for file in (*sorted((path / "commitlog").iterdir())[1:], *queues):
        file.unlink()
    (note,) = rmqfast.open_store(path).info().notes
    assert note.startswith("queue 0 of topic orders ends at 18, but gave the offsets before 60")
