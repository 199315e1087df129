"""An end of the log that was flushed and is gone: each reader reports it, and no writer gives a queue offset twice.

`rust/store/tests/store/recover/missing_end.rs` has more kinds of damage, logs of one file, and repairs that are ended.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, DamageWarning, Message
from rmqfast.errors import ArgumentError, CorruptError, UnknownMessageError, UnsupportedStoreError
from rmqfast.store import find_missing_end, repair
from rmqfast.tables import ingest
from tests.cli.command_line import run
from tests.golden_stores import NAMES, PathOf
from tests.reference.record import MAGIC_BLANK
from tests.store.scanned import pull_all, table_of

SMALL = AppendOptions(file_size=1 << 14, queue_file_size=2000, index_slots=16, index_entries=4000, zone_offset_ms=0)
COUNT = 400
REND = 4064


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("closed") / "store"
    with rmqfast.open_store(path, mode="a", options=SMALL, clock=iter(range(10**12, 10**13)).__next__) as store:
        for n in range(COUNT):
            store.append(Message("T", b"body %d" % n, queue_id=n % 2, keys=f"k{n}"))
        store.append(Message("late", b"the last one, without a key"))
    return path


def last(path: Path) -> Path:
    return max((path / "commitlog").iterdir())


def zero_half(path: Path) -> None:
    content = last(path).read_bytes()
    end = len(content.rstrip(b"\0"))
    last(path).write_bytes(content[: end // 2].ljust(len(content), b"\0"))


def zero_two(path: Path) -> None:
    newest = last(path)
    for base in (int(newest.name), int(newest.name) + SMALL.file_size):
        newest.with_name(f"{base:020}").write_bytes(bytes(SMALL.file_size))


def blank_half(path: Path) -> None:
    """A blank in place of the last messages, as that of a file that ended early."""
    row = table_of(rmqfast.open_store(path).scan("T")).to_pylist()[-10]
    at = row["physical_offset"] % SMALL.file_size
    size = SMALL.file_size - at
    blank = size.to_bytes(4, "big") + MAGIC_BLANK.to_bytes(4, "big")
    last(path).write_bytes((last(path).read_bytes()[:at] + blank).ljust(SMALL.file_size, b"\0"))


def link_nowhere(path: Path) -> None:
    file = last(path)
    file.unlink()
    file.symlink_to("/nowhere/archive")


def replace_by_directory(path: Path) -> None:
    file = last(path)
    file.unlink()
    file.mkdir()


HARMS: dict[str, Callable[[Path], object]] = {
    "the last file is gone": lambda path: last(path).unlink(),
    "the last file is empty": lambda path: last(path).write_bytes(b""),
    "the last file is zeroes": lambda path: last(path).write_bytes(bytes(SMALL.file_size)),
    "the last file is zeroes and the next one was made": zero_two,
    "the last file is short": lambda path: last(path).write_bytes(last(path).read_bytes()[:3000]),
    "half of the last file is zeroes": zero_half,
    "a blank ends the last file": blank_half,
    "the last file is a link that leads nowhere": link_nowhere,
    "the last file is a directory": replace_by_directory,
    "all files are gone": lambda path: shutil.rmtree(path / "commitlog"),
}


def without_offset(path: Path) -> None:
    """The checkpoint as RocketMQ writes it; then queues and index tell."""
    checkpoint = path / "checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes()[:REND].ljust(4096, b"\0"))


def without_queues(path: Path) -> None:
    shutil.rmtree(path / "consumequeue")


def abort(path: Path) -> None:
    (path / "abort").touch()


WITNESSES: dict[str, Callable[[Path], object]] = {
    "all": lambda _: None,
    "queues": without_offset,
    "checkpoint": without_queues,
    "checkpoint of a crash": abort,
}


@pytest.mark.parametrize("witness", WITNESSES.values(), ids=WITNESSES)
@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_each_reader_hears_of_a_lost_end(
    closed: Path, tmp_path: Path, harm: Callable[[Path], object], witness: Callable[[Path], object]
) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    rows = table_of(rmqfast.open_store(path).scan()).to_pylist()
    ends = [row["physical_offset"] + row["store_size"] for row in rows]
    witness(path)
    harm(path)
    store = rmqfast.open_store(path)
    scan = store.scan(columns=["physical_offset"])
    with pytest.warns(DamageWarning, match="damaged places"):
        found = scan.to_arrow()["physical_offset"].to_pylist()
    missing = ends[len(found) :]
    assert missing
    assert min(place.offset for place in scan.damage) <= missing[0]
    assert max(place.offset + place.length for place in scan.damage) >= missing[-1]
    with pytest.raises(CorruptError, match="commitlog"):
        store.scan(columns=["topic"], on_damage="fail").to_arrow()
    assert not store.export(tmp_path / "exported").ok
    assert ingest(store, tmp_path / "parquet", on_damage="warn").damage
    assert not store.verify().ok
    with pytest.warns(DamageWarning), pytest.raises(UnknownMessageError):
        store.message_by_id(rows[-1]["offset_msg_id"])
    # a link has the length of a file, as far as anybody knows
    assert harm is link_nowhere or any("messages are lost" in note for note in store.info().notes)
    if (path / "consumequeue").exists():
        for way in (None, "log", "queue"):
            with pytest.warns(DamageWarning):
                store.scan("T", way=way, columns=["queue_offset"]).to_arrow()


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_writer_refuses_a_lost_end_until_a_cut_is_named(
    closed: Path, tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    harm(path)
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
    report = repair(path, options=SMALL, cut_at=missing.log_end)
    assert report.left_out > 0
    for turn in range(3):
        store = rmqfast.open_store(path, mode="a", options=SMALL)
        assert store.append(Message("T", b"new", queue_id=1)).queue_offset == COUNT // 2 + turn
        if turn != 1:  # this one is left as by a process that was killed
            store.close()
        del store
    with rmqfast.open_store(path) as reader:
        scan = reader.scan("T", queue_ids=[1], columns=["queue_offset"])
        offsets = scan.to_arrow()["queue_offset"].to_pylist()
        assert (offsets[-3:], scan.damage) == ([200, 201, 202], [])
        # a group at the old end goes on with the first message that came since
        assert pull_all(reader, "T", 1, 200)[0] == [200, 201, 202]
        assert pull_all(reader, "T", 1)[0] == offsets
        assert reader.verify().damage == []


def content(path: Path) -> dict[Path, bytes | None]:
    return {file: file.read_bytes() if file.is_file() else None for file in path.rglob("*")}


def test_the_command_names_what_is_lost_and_cuts_there_alone(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    last(path).unlink()
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


def test_no_log_is_given_up_beside_a_queue_whose_only_file_is_a_directory(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    queue = path / "consumequeue/T/1"
    shutil.rmtree(queue)
    (queue / ("0" * 20)).mkdir(parents=True)
    shutil.rmtree(path / "commitlog")
    missing = find_missing_end(path)
    assert missing is not None
    with pytest.raises(UnsupportedStoreError, match=r"consumequeue/T/1/0+: expected a file"):
        repair(path, options=SMALL, cut_at=missing.log_end)


def test_a_sound_store_has_its_end_and_so_has_one_that_is_written(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    for change in (without_offset, without_queues, abort):
        change(path)
        scan = rmqfast.open_store(path).scan(columns=["topic"])
        assert (scan.to_arrow().num_rows, scan.damage) == (COUNT + 1, [])
    with rmqfast.open_store(path, mode="a", options=SMALL) as writer:
        reader = rmqfast.open_store(path)
        for n in range(COUNT):
            writer.append(Message("T", b"more", queue_id=n % 2))
        writer.flush()
        for store, rows in ((reader, COUNT + 1), (rmqfast.open_store(path), 2 * COUNT + 1), (writer, 2 * COUNT + 1)):
            scan = store.scan(columns=["topic"])
            assert (scan.to_arrow().num_rows, scan.damage) == (rows, [])


@pytest.mark.parametrize("witness", [lambda _: None, without_offset], ids=["offset", "queues"])
def test_a_log_of_five_bytes_can_be_exported(closed: Path, tmp_path: Path, witness: Callable[[Path], object]) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    witness(path)
    newest = last(path)
    for file in (path / "commitlog").iterdir():
        if file != newest:
            file.unlink()
    newest.write_bytes(newest.read_bytes()[:5])
    report = rmqfast.open_store(path).export(tmp_path / "exported")
    assert (report.rows, report.ok) == (0, False)


def test_a_store_that_crashed_and_has_no_log_hears_of_it(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    for change in (without_offset, abort, HARMS["all files are gone"]):
        change(path)
    scan = rmqfast.open_store(path).scan(columns=["topic"])
    with pytest.warns(DamageWarning):
        assert scan.to_arrow().num_rows == 0
    assert "lists message" in scan.damage[0].reason


def test_an_id_behind_all_that_is_known_of_a_lost_end_is_warned_of(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        store.append(Message("late", b"in the index", keys="late"))
    row = table_of(rmqfast.open_store(path).scan("late")).to_pylist()[1]
    without_offset(path)
    shutil.rmtree(path / "consumequeue/late")
    shutil.rmtree(path / "commitlog")
    with pytest.warns(DamageWarning, match="or behind"), pytest.raises(UnknownMessageError):
        rmqfast.open_store(path).message_by_id(row["offset_msg_id"])


@pytest.mark.parametrize("number", [0, 1])
def test_a_blank_file_in_which_queues_list_messages_is_told(closed: Path, tmp_path: Path, number: int) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    file = sorted((path / "commitlog").iterdir())[number]
    blank = SMALL.file_size.to_bytes(4, "big") + MAGIC_BLANK.to_bytes(4, "big")
    file.write_bytes(blank.ljust(SMALL.file_size, b"\0"))
    for arguments in ({}, {"topic": "T", "way": "log"}, {"topic": "T", "way": "log", "threads": 2}):
        scan = rmqfast.open_store(path).scan(**arguments)
        with pytest.warns(DamageWarning):
            assert 0 < scan.to_arrow().num_rows < COUNT
        assert [(place.offset, place.length, place.file) for place in scan.damage] == [
            (number * SMALL.file_size, SMALL.file_size, str(file))
        ]
    assert not rmqfast.open_store(path).export(tmp_path / "exported").ok
    assert ingest(rmqfast.open_store(path), tmp_path / "parquet", on_damage="warn").damage


@pytest.mark.parametrize("kept", [0, 5000])
def test_the_content_of_another_file_is_told_to_the_end(closed: Path, tmp_path: Path, kept: int) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    first, second, _ = sorted((path / "commitlog").iterdir())
    first.write_bytes(first.read_bytes()[:kept] + second.read_bytes()[kept:])
    rows = table_of(rmqfast.open_store(closed).scan(columns=["physical_offset", "store_size"])).to_pylist()
    lost = [row for row in rows if kept < row["physical_offset"] + row["store_size"] <= SMALL.file_size]
    scan = rmqfast.open_store(path).scan(columns=["physical_offset"])
    with pytest.warns(DamageWarning):
        found = scan.to_arrow()["physical_offset"].to_pylist()
    assert found == [row["physical_offset"] for row in rows if row not in lost]
    assert [(place.offset, place.offset + place.length) for place in scan.damage] == [
        (lost[0]["physical_offset"], SMALL.file_size)
    ]


def test_a_file_that_a_repair_left_blank_is_no_damage(closed: Path, tmp_path: Path) -> None:
    path = tmp_path / "store"
    shutil.copytree(closed, path)
    last(path).unlink()
    last(path).write_bytes(bytes(SMALL.file_size))
    with pytest.warns(DamageWarning):
        kept = rmqfast.open_store(path).scan(columns=["topic"]).to_arrow().num_rows
    missing = find_missing_end(path)
    assert missing is not None
    repair(path, options=SMALL, cut_at=missing.log_end)
    assert last(path).read_bytes()[:8] == bytes(8)
    blank = sorted((path / "commitlog").iterdir())[-2].read_bytes()
    assert blank[:8] == SMALL.file_size.to_bytes(4, "big") + MAGIC_BLANK.to_bytes(4, "big")
    for way in (None, "log"):
        scan = rmqfast.open_store(path).scan(topic="T", way=way)
        assert (scan.to_arrow().num_rows, scan.damage) == (kept, [])
