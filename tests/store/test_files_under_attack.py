"""Files of the log are cut off, replaced, removed and written over under their readers: an error or the old bytes.

Never a crash. 60 attacks of each way to read, 1,000 of them with RMQFAST_FULL=1, or as RMQFAST_ATTACKS says.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, Message
from tests.effort import effort

ATTACKS = effort("RMQFAST_ATTACKS", 60, 1000)
COUNT = 6000
FILE_SIZE = 1 << 20

# Says a dot for each batch, so that attacks come while it reads. Ends when its input does.
READER = """
import select, sys
import pyarrow as pa
import rmqfast
from rmqfast.errors import CorruptError, StoreError
from tests.store.test_files_under_attack import COUNT, body

path, io, way, threads = sys.argv[1:]

def is_over():
    return bool(select.select([sys.stdin], [], [], 0)[0])

def read():
    with rmqfast.open_store(path, io=io) as store:
        scan = store.scan("orders", way=way, threads=int(threads), columns=["queue_offset", "body"], verify_crc=True,
                          batch_rows=200, on_damage="warn")
        offsets = set()
        for batch in scan.batches():
            print(".", flush=True)
            for offset, got in zip(batch["queue_offset"].to_pylist(), batch["body"].to_pylist()):
                assert got == body(offset), f"message {offset}: got {got[:40]!r} ... of {len(got)} bytes"
                offsets.add(offset)
        assert len(offsets) == COUNT or scan.damage, f"{len(offsets)} messages, and no damage told"
        return len(offsets)

while not is_over():
    try:
        read()
    except StoreError as error:
        print("error", error, flush=True)
print("whole", read(), flush=True)
"""

Attack = Callable[[Path, random.Random], None]


def body(offset: int) -> bytes:
    """The body of a message, long enough that a hole in it is seen."""
    return f"{offset:06} ".encode() * 150


def cut_off(file: Path, chance: random.Random) -> None:
    os.truncate(file, chance.randrange(FILE_SIZE))


def remove(file: Path, _: random.Random) -> None:
    file.unlink()


def replace(file: Path, chance: random.Random) -> None:
    new = file.with_name("new")
    new.write_bytes(chance.randbytes(chance.randrange(FILE_SIZE)))
    new.replace(file)


def write_over(file: Path, chance: random.Random) -> None:
    with file.open("r+b") as opened:
        opened.seek(chance.randrange(FILE_SIZE))
        opened.write(chance.randbytes(5000))


# Nobody changes bytes of a mapped store, as its opener promises; what is lost in spite of that is no crash.
ATTACKS_OF: dict[str, tuple[Attack, ...]] = {
    "auto": (cut_off, remove, replace, write_over),
    "pread": (cut_off, remove, replace),
    "mmap": (cut_off, remove, replace),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "store"
    with rmqfast.open_store(path, mode="a", options=AppendOptions(file_size=FILE_SIZE)) as store:
        store.append_many([Message("orders", body(offset), queue_id=0) for offset in range(COUNT)])
    return path


@contextmanager
def reader(path: Path, io: str, way: str, threads: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "ignore", "-c", READER, str(path), io, way, str(threads)]
    pipe = subprocess.PIPE
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=root) as process:
        try:
            yield process
        finally:
            process.kill()


def attack(path: Path, sound: Path, process: subprocess.Popen[str], attacks: tuple[Attack, ...]) -> None:
    """Harms a file at each batch that is read, and puts it back at the next one, under a new inode."""
    chance = random.Random(7)
    assert process.stdout is not None
    for number in range(ATTACKS):
        # without its first file, a log is one that retention has shortened
        file = chance.choice(sorted((sound / "commitlog").iterdir())[1:-1])
        there = path / "commitlog" / file.name
        chance.choice(attacks)(there, chance)
        for _ in range(chance.randrange(1, 4)):
            if not process.stdout.readline():
                _, errors = process.communicate()
                pytest.fail(f"the reader ended at attack {number} with {process.returncode}: {errors[-800:]}")
        whole = path / "whole"
        shutil.copy(file, whole)
        whole.replace(there)


@pytest.mark.parametrize(
    ("io", "way", "threads"),
    [("auto", "log", 1), ("auto", "log", 2), ("pread", "log", 1), ("mmap", "log", 1), ("mmap", "queue", 1)],
)
def test_a_reader_survives_what_is_done_to_its_files(
    sound: Path, tmp_path: Path, io: str, way: str, threads: int
) -> None:
    path = tmp_path / "store"
    shutil.copytree(sound, path)
    with reader(path, io, way, threads) as process:
        attack(path, sound, process, ATTACKS_OF[io])
        output, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert output.splitlines()[-1] == f"whole {COUNT}"
