"""How much of a disk a store takes: what its messages need, and a file of the commit log."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqfast


def blocks(path: Path) -> int:
    """Bytes of the disk that a directory and all below it take."""
    return 512 * (path.stat().st_blocks + sum(each.lstat().st_blocks for each in path.rglob("*")))


@pytest.fixture
def few_files() -> Iterator[None]:
    """The usual limit of open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.long
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
