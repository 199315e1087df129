"""A disk that is full and freed again: reads go on, appends resume, nothing acknowledged is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

import rmqfast
from tests.store.small_disk import on_small_disk

FILLING = """
import errno, os, sys
from pathlib import Path
import rmqfast
from rmqfast.errors import StoreIOError

disk, cycles = Path(sys.argv[1]), 100
store_path, ballast = disk / "store", disk / "ballast"
sizes = rmqfast.AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=1000, index_entries=4000)
store = rmqfast.open_store(store_path, mode="a", options=sizes)
stored = []

def fill():
    with ballast.open("ab") as file:
        try:
            while True:
                file.write(bytes(1 << 16)); file.flush()
        except OSError:
            pass

def append_until_full():
    while True:
        body = b"%d" % len(stored) * 100
        try:
            place = store.append(rmqfast.Message("T", body, keys=f"k{len(stored)}"))
        except StoreIOError as error:
            assert error.errno == errno.ENOSPC, error
            return
        assert place.queue_offset == len(stored)
        stored.append(body)

for cycle in range(cycles):
    fill()
    append_until_full()
    assert store.scan("T", columns=["body"]).to_arrow().num_rows == len(stored)
    before = len(stored)
    os.truncate(ballast, ballast.stat().st_size - (300 << 10))
    while len(stored) == before:
        append_until_full()
del store
os.truncate(ballast, ballast.stat().st_size - (2 << 20))
with rmqfast.open_store(store_path, mode="a", options=sizes) as store:
    assert store.scan("T", columns=["body"], verify_crc=True).to_arrow()["body"].to_pylist() == stored
    assert store.verify().ok
print(len(stored))
"""


# Killed on a full disk, a store opens, is read, and takes messages once there is room.
KILLED = """
import errno, os, signal, sys
from pathlib import Path
import rmqfast
from rmqfast.errors import StoreIOError

disk = Path(sys.argv[1])
store_path, ballast, acknowledged = disk / "store", disk / "ballast", disk / "acknowledged"
sizes = rmqfast.AppendOptions(file_size=1 << 20, index_slots=100_000, index_entries=400_000)

def message(n):
    return rmqfast.Message("T", b"%d" % n, keys=f"k{n}", queue_id=n % 50)

def append_and_die(first):
    store = rmqfast.open_store(store_path, mode="a", options=sizes)
    for n in range(first, first + 1_000_000):
        if n == first + 500:
            fill(ballast)
        try:
            store.append(message(n))
        except StoreIOError as error:
            assert error.errno == errno.ENOSPC, error
            os.pwrite(told, b"%8d" % n, 0)
            os.kill(os.getpid(), signal.SIGKILL)

told = os.open(acknowledged, os.O_RDWR | os.O_CREAT)
os.pwrite(told, bytes(8), 0)
count = 0
for _ in range(10):
    child = os.fork()
    if child == 0:
        try:
            append_and_die(count)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    count = int(os.pread(told, 8, 0))
    fill(ballast)
    with rmqfast.open_store(store_path, mode="a", options=sizes) as store:
        assert store.recovery.log_end > 0
        rows = store.scan("T", columns=["body"], verify_crc=True).to_arrow()["body"].to_pylist()
        assert [int(body) for body in rows] == list(range(count))
        assert store.query("T", f"k{count - 1}")[0].body == b"%d" % (count - 1)
        fill(ballast)
        try:
            while True:
                store.append(message(count))
                count += 1
        except StoreIOError as error:
            assert error.errno == errno.ENOSPC, error
        os.truncate(ballast, max(0, ballast.stat().st_size - (3 << 20)))
        store.append(message(count))
        count += 1
        assert store.verify().ok
print(count)
"""


NEW = """
import errno, sys
from pathlib import Path
import rmqfast
from rmqfast.errors import StoreIOError

path = Path(sys.argv[1]) / "store"
try:
    rmqfast.open_store(path, mode="a")
except StoreIOError as error:
    assert error.errno == errno.ENOSPC, error
    print(error)
small = rmqfast.AppendOptions(file_size=1 << 20, index_slots=1000, index_entries=4000)
with rmqfast.open_store(path, mode="a", options=small) as store:
    store.append(rmqfast.Message("T", b"body"))
"""


EXPORTING = """
import errno, os, sys
from pathlib import Path
import rmqfast
from rmqfast.errors import StoreIOError

disk, source = Path(sys.argv[1]), Path(sys.argv[2])
store = rmqfast.open_store(source)
large = rmqfast.AppendOptions(file_size=1 << 20, queue_file_size=2000, index_slots=1000, index_entries=4000)
for name, options in (("out", large), ("out.jsonl", None)):
    try:
        store.export(disk / name, options=options)
    except StoreIOError as error:
        assert error.errno == errno.ENOSPC, error
        assert str(disk / name) in str(error.filename), error.filename
    else:
        raise AssertionError(f"{name} had room")
    assert list(disk.iterdir()) == []
# what fits is written
assert store.export(disk / "out", end_offset=3, options=large).rows == 3
print(os.listdir(disk))
"""


@pytest.mark.long
def test_a_full_disk_leaves_nothing_of_an_export(tmp_path: Path) -> None:
    sizes = rmqfast.AppendOptions(file_size=1 << 20, queue_file_size=2000, index_slots=1000, index_entries=4000)
    with rmqfast.open_store(tmp_path / "store", mode="a", options=sizes) as store:
        store.append_many([rmqfast.Message("T", bytes(10_000))] * 900)
    assert on_small_disk(EXPORTING, 6, tmp_path, tmp_path / "store") == "['out']\n"


@pytest.mark.long
def test_a_full_disk_refuses_and_a_freed_one_takes_again(tmp_path: Path) -> None:
    assert int(on_small_disk(FILLING, 96, tmp_path)) > 1000


@pytest.mark.long
def test_killed_on_a_full_disk_it_opens_and_goes_on(tmp_path: Path) -> None:
    assert int(on_small_disk(KILLED, 24, tmp_path)) > 5000


@pytest.mark.long
def test_a_new_store_says_how_much_room_it_needs(tmp_path: Path) -> None:
    told = on_small_disk(NEW, 8, tmp_path)
    for part in ("1073741824 bytes", "that are free", "mappedFileSizeCommitLog", str(tmp_path / "disk/store")):
        assert part in told
