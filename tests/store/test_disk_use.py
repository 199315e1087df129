"""How much of a disk a store takes: what its messages need, and a file of the commit log."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqfast


def blocks(path: Path) -> int:
    """Bytes of the disk that a directory and all below it take."""
    return 512 * (path.stat().st_blocks + sum(each.lstat().st_blocks for each in path.rglob("*")))


def stored(path: Path) -> list[tuple[int, int]]:
    """What a file system has of a file, and who reads it finds: no holes, no blocks that were never written."""
    with path.open("rb") as file:
        end = 0
        ranges: list[tuple[int, int]] = []
        while True:
            try:
                begin = os.lseek(file.fileno(), end, os.SEEK_DATA)
            except OSError:  # nothing behind
                return ranges
            end = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
            ranges.append((begin, end))


def test_a_look_at_the_end_of_the_log_leaves_no_pages_behind_it(tmp_path: Path) -> None:
    with rmqfast.open_store(tmp_path, mode="a", options=rmqfast.AppendOptions(file_size=64 << 20)) as store:
        for n in range(1000):
            store.append(rmqfast.Message("orders", bytes(1000), tags=f"t{n % 10}"))
    log = tmp_path / "commitlog/00000000000000000000"
    with log.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = stored(log)
    for _ in range(2):
        with rmqfast.open_store(tmp_path) as store:
            assert store.scan("orders", tags="t1").to_arrow().num_rows == 100
        assert stored(log) == before


@pytest.fixture
def few_files() -> Iterator[None]:
    """The usual limit of open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.long
@pytest.mark.timeout(900)  # removing a hundred thousand directories takes minutes on a busy disk
@pytest.mark.usefixtures("few_files")
@pytest.mark.parametrize("count", [10_000, 100_000])
def test_queues_with_one_message_each(count: int, tmp_path: Path) -> None:
    options = rmqfast.AppendOptions(file_size=64 << 20)
    with rmqfast.open_store(tmp_path, mode="a", options=options) as store:
        for n in range(count):
            store.append(rmqfast.Message(f"T{n // 100}", b"body", keys=f"k{n}", queue_id=n % 100))
        assert len(list(Path("/proc/self/fd").iterdir())) < 512
        assert Path("/proc/self/maps").read_bytes().count(b"consumequeue") < 512
    assert (tmp_path / "consumequeue/T0/0/00000000000000000000").stat().st_size == 6_000_000
    assert blocks(tmp_path) - blocks(tmp_path / "commitlog") < count * 20_000
    with rmqfast.open_store(tmp_path, mode="a", options=options) as store:
        assert store.recovery is None
        assert sum(len(queues) for queues in store.topics().values()) == count
