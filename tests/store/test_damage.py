"""Damaged stores: a typed error or a Damage entry that says where, never a crash, a hang or a wrong row."""

from __future__ import annotations

import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from rmqfast import errors
from rmqfast.store import ScanRequest
from rmqfast.store.scan_source import Way
from tests.reference import record as record_format
from tests.reference.writer import Message, Options, write_store
from tests.store.scanned import opened, rows_and_damage, rows_of, scanned, table_of
from tests.store.small_store import FILE_SIZE, SmallStore, small_store


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    return small_store(tmp_path / "store")


WAYS = pytest.mark.parametrize("way", ["log", "queue"])


@WAYS
@pytest.mark.parametrize("position", [0, 1, 2, -1])
def test_a_removed_file_is_a_gap(store: SmallStore, position: int, way: str) -> None:
    path = store.segments[position]
    start = int(path.name)
    path.unlink()
    rows, damage = rows_and_damage(store.path, "T", way=way)
    assert rows == store.rows_but(lambda r: start <= r.physical_offset < start + FILE_SIZE)
    # without its oldest file a log looks as retention leaves it
    assert bool(damage) == (position != 0)


@WAYS
@pytest.mark.parametrize(
    ("at", "data"),
    [
        (4, b"\xda\xa3\x20\xa8"),
        (4, b"\0\0\0\0"),
        (0, struct.pack(">i", -1)),
        (0, struct.pack(">i", 0)),
        (0, struct.pack(">i", 90)),
        (0, struct.pack(">i", (1 << 31) - 1)),
        (84, struct.pack(">i", -5)),
        (84, struct.pack(">i", (1 << 31) - 1)),
        (28, struct.pack(">q", -1)),
        (28, struct.pack(">q", 1 << 62)),
        (0, bytes(8)),
        (0, bytes(88)),
    ],
)
@pytest.mark.parametrize("which", [0, 30, -1])
def test_a_broken_head_is_damage_that_says_expected_and_got(
    store: SmallStore, which: int, at: int, data: bytes, way: str
) -> None:
    broken = store.records[which]
    store.patch(broken.physical_offset + at, data)
    rows, damage = rows_and_damage(store.path, "T", way=way)
    assert rows == store.rows_but(lambda r: r == broken)
    assert [entry.offset for entry in damage] == [broken.physical_offset]
    assert "expected" in damage[0].reason
    assert "got" in damage[0].reason
    assert Path(damage[0].file).name == f"{broken.physical_offset // FILE_SIZE * FILE_SIZE:020d}"


def test_an_all_zero_file_behind_the_log_is_no_damage(store: SmallStore) -> None:
    end = int(store.segments[-1].name) + FILE_SIZE
    (store.path / "commitlog" / f"{end:020d}").write_bytes(bytes(FILE_SIZE))
    assert rows_and_damage(store.path) == (store.rows, [])


def test_stale_bytes_behind_the_end_are_no_rows(store: SmallStore) -> None:
    """As in a file that was used before: records whose offset is another."""
    end = store.records[-1].physical_offset + store.records[-1].store_size
    stale = b"".join(record_format.encode(record) for record in store.records[:3])
    store.patch(end, stale)
    rows, damage = rows_and_damage(store.path, "T")
    assert rows == store.rows
    assert [(entry.offset, entry.length) for entry in damage] == [(end, len(stale))]
    assert "physical offset at +28" in damage[0].reason


def test_strays_and_odd_files_are_passed_over(store: SmallStore) -> None:
    log = store.path / "commitlog"
    (log / "lock").write_bytes(b"x")
    (log / "0000000000000000000").write_bytes(b"19 digits")
    (log / "99999999999999999999").write_bytes(b"more than a long holds")
    (log / f"{1 << 40:020d}").mkdir()
    subprocess.run(["mkfifo", log / f"{1 << 42:020d}", store.path / "abort.fifo"], check=True)
    assert rows_and_damage(store.path) == (store.rows, [])


@WAYS
def test_a_file_far_behind_is_a_gap_and_costs_no_pieces(store: SmallStore, way: Way) -> None:
    (store.path / "commitlog" / f"{(1 << 62) // FILE_SIZE * FILE_SIZE:020d}").write_bytes(b"\xff" * 100)
    rows, damage = rows_and_damage(store.path, "T", way=way)
    assert rows == store.rows
    pieces, _, _ = opened(store.path).plan(ScanRequest(topic="T"), cut_bytes=1, way=way)
    assert len(pieces) < 100_000
    assert damage


@WAYS
def test_a_size_of_gigabytes_in_a_sparse_file_is_not_read(tmp_path: Path, way: str) -> None:
    """Runs apart, to see what it takes."""
    size = (1 << 31) - 4096
    store = small_store(tmp_path / "s", [Message("T", b"x" * 100) for _ in range(5)])
    path = store.segments[0]
    with path.open("r+b") as file:
        file.truncate(size)
    broken = store.records[2]
    store.patch(broken.physical_offset, struct.pack(">i", size - broken.physical_offset - 10))
    store.patch_unit(2, struct.pack(">qi", broken.physical_offset, size - broken.physical_offset - 10))
    code = f"""
import resource, warnings, rmqfast
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
scan = rmqfast.open_store({str(store.path)!r}).scan("T", way={way!r}, columns=["queue_offset"])
print([row for batch in scan.batches() for row in batch.column(0).to_pylist()], len(scan.damage))
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.strip() == "[0, 1, 3, 4] 1"


def test_properties_of_thousands_of_names_take_linear_time(tmp_path: Path) -> None:
    def cpu_seconds(count: int) -> float:
        names = {f"{n:x}": "v" for n in range(count)}
        store = write_store(tmp_path / str(count), [Message("T", properties=tuple(names.items()))] * 20, Options())
        filtered: dict[str, Any] = {"sql": "abc IS NULL OR abc = 'v'", "threads": 1}
        rows, damage = rows_and_damage(store.path, "T", **filtered)
        assert damage == []
        assert [row["properties"] for row in rows] == [names] * 20
        taken = []
        for _ in range(5):
            begin = time.thread_time()  # of this thread alone, whatever else the machine does
            table_of(scanned(store.path, "T", **filtered))
            taken.append(time.thread_time() - begin)
        return min(taken)

    # 9.6 times as many names; to compare each with all others would take 92 times as long
    assert cpu_seconds(4800) < cpu_seconds(500) * 40


@pytest.mark.parametrize("kind", [0x300, 0x100, 0x200, 0x700, 0x500])
def test_a_body_that_does_not_decompress_is_null_with_damage_of_no_length(tmp_path: Path, kind: int) -> None:
    messages = [Message("T", b"plain"), Message("T", b"no stream", sys_flag=0x1 | kind), Message("T", b"plain")]
    store = write_store(tmp_path / "s", messages, Options())
    rows, damage = rows_and_damage(store.path, "T")
    assert [row["body"] for row in rows] == [b"plain", None, b"plain"]
    assert [(d.offset, d.length) for d in damage] == [(store.records[1].physical_offset, 0)]
    assert Path(damage[0].file).is_file()


def test_a_bomb_is_a_null_body_and_takes_no_more_than_its_cap(tmp_path: Path) -> None:
    size = (64 << 20) + 1
    messages = [Message("T", zlib.compress(bytes(size), 1), sys_flag=0x301), Message("T", b"after")]
    store = write_store(tmp_path / "s", messages, Options(commitlog_file_size=4 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for options, cap in (({"max_body_bytes": 1 << 20}, 1 << 20), ({}, 64 << 20)):
        rows, damage = rows_and_damage(store.path, "T", **options)
        assert [row["body"] for row in rows] == [None, b"after"]
        assert [entry.length for entry in damage] == [0]
        assert f"at most {cap}" in damage[0].reason
        # half of what the whole body would take
        assert options == {} or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < size >> 11
    big = rows_of(scanned(store.path, "T", max_body_bytes=1 << 30))
    assert len(big[0]["body"]) == size


def test_a_store_that_is_no_directory_is_a_typed_error(tmp_path: Path, store: SmallStore) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (file, loop):
        with pytest.raises(errors.StoreIOError) as raised:
            opened(path)
        assert raised.value.filename == str(path)
    with pytest.raises(errors.StoreNotFoundError):
        opened(tmp_path / "nowhere")
    with pytest.raises(errors.UnsupportedStoreError, match="no RocketMQ store"):
        opened(tmp_path)
    with pytest.raises(errors.UnsupportedStoreError, match="give the store directory above"):
        opened(store.path / "commitlog")
    with pytest.raises(errors.StoreNotFoundError):
        opened(store.path, [tmp_path / "nowhere"])


def test_a_file_that_may_not_be_read_is_an_error_that_names_it() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        store = small_store(Path(directory) / "s")
        for hidden in (store.segments[1], store.path / "consumequeue" / "T"):
            hidden.chmod(0)
            assert error_of_nobody(store.path) == f"[Errno 13] permission denied: {str(hidden)!r}"
            hidden.chmod(0o755)


def error_of_nobody(path: Path) -> str:
    """What a scan raises under a user whom permissions hold, as they do not hold root."""
    code = f"""
import os, pyarrow, rmqfast.store
if os.geteuid() == 0:
    os.setgroups([])
    os.setresuid(65534, 65534, 65534)
try:
    rmqfast.open_store({str(path)!r}).scan("T").to_arrow()
except rmqfast.errors.StoreIOError as error:
    print(error)
"""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


HOSTILE: list[str] = [
    "../x",
    "a/b",
    "..",
    ".",
    "",
    "\x00",
    "a\0b",
    "\x1b[2J",
    "é" * 127,
    "x" * 255,
    "x" * 256,
    "x" * 100_000,
]


@pytest.mark.parametrize("topic", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("way", ["log", "queue", None])
def test_a_hostile_topic_is_unknown(store: SmallStore, topic: str, way: str | None) -> None:
    (store.path / "x").mkdir()
    with pytest.raises(errors.UnknownTopicError):
        scanned(store.path, topic, way=way)


def test_directories_of_hostile_names_hide_no_topic(store: SmallStore) -> None:
    queues = bytes(store.path / "consumequeue")
    for name in (b"\xff\xfe", b"\x1b[2J", b"n" * 255, b"T\n", b" "):
        (Path((queues + b"/" + name).decode(errors="surrogateescape")) / "0").mkdir(parents=True)
    (store.path / "consumequeue" / "T" / "not a number").mkdir()
    (store.path / "consumequeue" / "T" / "99999999999999999999").mkdir()
    (store.path / "consumequeue" / "a file").write_bytes(b"")
    assert rows_and_damage(store.path, "T", way="queue") == (store.rows, [])


@pytest.mark.parametrize(
    ("options", "position"),
    [({"tags": "||"}, 0), ({"sql": "a >"}, 3), ({"sql": "a = 'x"}, 4), ({"sql": "(" * 5000}, None)],
)
def test_an_expression_that_does_not_parse_says_where(
    store: SmallStore, options: dict[str, Any], position: int | None
) -> None:
    with pytest.raises(
        errors.ExpressionError, match=r"at position \d+" if position is None else f"at position {position}"
    ):
        scanned(store.path, "T", **options)
