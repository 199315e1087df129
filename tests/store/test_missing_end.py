"""A log that ends before what was flushed: nobody appends to it, and a named cut gives no queue offset twice."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, Message
from rmqfast.errors import ArgumentError, CorruptError, UnsupportedStoreError
from rmqfast.store import find_missing_end, repair
from tests.cli.command_line import run
from tests.golden_stores import NAMES, PathOf
from tests.reference.record import MAGIC_BLANK, MAGIC_V1
from tests.store.scanned import pull_all

SMALL = AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=1000, index_entries=4000, zone_offset_ms=0)
COUNT = 900


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 450 messages in each of two queues, all stored in one millisecond."""
    path = tmp_path_factory.mktemp("closed") / "store"
    with rmqfast.open_store(path, mode="a", options=SMALL, clock=lambda: 1_700_000_000_000) as store:
        store.append_many([Message("T", b"body %d" % n, queue_id=n % 2, keys=f"k{n}") for n in range(COUNT)])
    return path


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def zeroed(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def cut(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data.rstrip(b"\0")) // 2])


def removed(file: Path) -> None:
    file.unlink()


def not_mounted(file: Path) -> None:
    file.unlink()
    file.symlink_to("/nowhere/archive")


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def blank(file: Path) -> None:
    """As another file that was full and ended early."""
    file.write_bytes(blank_of(file.stat().st_size))


def half_blank(file: Path) -> None:
    data = file.read_bytes()
    messages = range(len(data.rstrip(b"\0")) // 2)
    at = next(n for n in messages[::-1] if data[n + 4 : n + 8] == MAGIC_V1.to_bytes(4, "big"))
    file.write_bytes(data[:at] + blank_of(len(data) - at))


def blank_of(size: int) -> bytes:
    return (size.to_bytes(4, "big") + MAGIC_BLANK.to_bytes(4, "big")).ljust(size, b"\0")


HARMS = (emptied, zeroed, cut, removed, not_mounted, directory, blank, half_blank)


def harmed(closed: Path, path: Path, harm: Callable[[Path], None]) -> Path:
    shutil.copytree(closed, path)
    harm(max((path / "commitlog").iterdir()))
    return path


def content(path: Path) -> dict[Path, bytes | None]:
    return {file: file.read_bytes() if file.is_file() else None for file in path.rglob("*")}


@pytest.mark.parametrize("harm", HARMS)
def test_a_log_without_its_end_is_refused_and_nothing_is_changed(
    closed: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    path = harmed(closed, tmp_path / "s", harm)
    before = content(path)
    missing = find_missing_end(path)
    assert missing is not None
    for options in (SMALL, None):
        with pytest.raises(CorruptError) as refused:
            rmqfast.open_store(path, mode="a", options=options)
        for part in (missing.file, missing.expected, missing.log_end, f"rmqfast store repair {path}"):
            assert str(part) in str(refused.value)
    with pytest.raises(CorruptError, match="nothing was changed"):
        repair(path)
    with pytest.raises(ArgumentError, match="cut_at"):
        repair(path, cut_at=missing.log_end + 1)
    assert content(path) == before


@pytest.mark.parametrize("harm", HARMS)
def test_a_cut_that_was_named_gives_no_offset_twice(closed: Path, tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = harmed(closed, tmp_path / "s", harm)
    missing = find_missing_end(path)
    assert missing is not None
    report = repair(path, options=SMALL, cut_at=missing.log_end)
    assert report.left_out > 0
    for turn in range(3):
        store = rmqfast.open_store(path, mode="a", options=SMALL)
        assert [store.append(Message("T", b"new", queue_id=n)).queue_offset for n in range(2)] == [450 + turn] * 2
        if turn != 1:  # that one is left as by a process that was killed
            store.close()
        del store
    with rmqfast.open_store(path) as reader:
        scan = reader.scan("T", queue_ids=[1], columns=["queue_offset"])
        offsets = scan.to_arrow()["queue_offset"].to_pylist()
        assert (offsets[-3:], scan.damage) == ([450, 451, 452], [])
        assert offsets[:-3] == list(range(len(offsets) - 3))
        assert reader.scan("T", columns=["queue_id"]).to_arrow().num_rows == COUNT - report.left_out + 6
        # a group at the old end goes on with the first message that came since
        assert pull_all(reader, "T", 1, 450)[0] == [450, 451, 452]
        assert pull_all(reader, "T", 1)[0] == offsets
        assert reader.verify().damage == []


def test_a_cut_gives_the_first_file_its_length_back(tmp_path: Path) -> None:
    path = tmp_path / "s"
    small = AppendOptions(file_size=1 << 14, queue_file_size=2000, index_slots=1000, index_entries=4000)
    with rmqfast.open_store(path, mode="a", options=small) as store:
        store.append_many([Message("T", b"body %d" % n) for n in range(250)])
    first, *others = sorted((path / "commitlog").iterdir())
    for other in others:
        other.unlink()
    with first.open("ab") as file:
        file.write(bytes(20))
    missing = find_missing_end(path)
    assert missing is not None
    repair(path, options=small, cut_at=missing.log_end)
    assert first.stat().st_size == 1 << 14
    for turn in range(2):
        with rmqfast.open_store(path, mode="a", options=small) as store:
            assert store.append(Message("T", b"new")).queue_offset == 250 + turn


def test_a_store_opens_after_a_repair_also_where_a_message_says_a_far_offset(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        store.append_many([Message("T", b"body %d" % n) for n in range(20)])
    log = path / "commitlog" / ("0" * 20)
    cut(log)
    data = bytearray(log.read_bytes().ljust(SMALL.file_size, b"\0"))
    data[20 + 6] ^= 0x80  # the queue offset of the first message
    log.write_bytes(data)
    missing = find_missing_end(path)
    assert missing is not None
    repair(path, options=SMALL, cut_at=missing.log_end)
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        assert store.append(Message("T", b"new")).queue_offset == 20


@pytest.mark.parametrize("name", ["0", "1"])
def test_no_log_is_given_up_beside_a_queue_whose_only_file_is_a_directory(
    closed: Path, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "s"
    shutil.copytree(closed, path)
    queue = path / "consumequeue/T" / name
    shutil.rmtree(queue)
    (queue / ("0" * 20)).mkdir(parents=True)
    shutil.rmtree(path / "commitlog")
    missing = find_missing_end(path)
    assert missing is not None
    with pytest.raises(UnsupportedStoreError, match=f"consumequeue/T/{name}/0+: expected a file"):
        repair(path, options=SMALL, cut_at=missing.log_end)


def test_the_command_names_what_is_lost_and_cuts_there_alone(closed: Path, tmp_path: Path) -> None:
    path = harmed(closed, tmp_path / "s", removed)
    before = content(path)
    shown = run("store", "repair", path)
    missing = find_missing_end(path)
    assert missing is not None
    assert shown.exit_code == 1
    assert f"rmqfast store repair {path} --cut-at {missing.log_end} --yes" in " ".join(shown.stderr.split())
    refused = run("store", "repair", path, "--yes")
    assert refused.exit_code != 0
    assert str(missing.file) in refused.stderr
    assert content(path) == before
    done = run("store", "repair", path, "--cut-at", str(missing.log_end), "--yes")
    assert (done.exit_code, "queue offsets are left out" in done.stderr) == (0, True)
    assert run("store", "verify", path).exit_code == 0
    again = run("store", "repair", path, "--cut-at", str(missing.log_end), "--yes")
    assert (again.exit_code, "the log has all that was flushed" in again.stderr) == (2, True)


@pytest.mark.parametrize("name", NAMES)
def test_a_store_of_a_real_broker_has_its_end(golden_store: PathOf, name: str) -> None:
    assert find_missing_end(golden_store(name)) is None
