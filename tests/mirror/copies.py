"""Compares a copy with the store of its master, and makes masters lose what a loss of power takes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from rmqfast import Message, MirrorStatus, Producer, open_store
from rmqfast.mirror import Mirror
from rmqfast.store import COLUMNS
from tests.disks import ROOMY
from tests.waiting import until

__all__ = ["SMALL", "assert_same", "caught_up", "ends_of", "log_of", "lose_tail", "rows_of", "send", "units_of"]

#: Files so small that a few hundred messages fill some.
SMALL = (
    "mappedFileSizeCommitLog=1048576",
    "mappedFileSizeConsumeQueue=20000",
    "maxHashSlotNum=1000",
    "maxIndexNum=4000",
    *(f"{key}={value}" for key, value in ROOMY.items()),
)


def send(name_server: str, topic: str, bodies: list[bytes], **properties: str) -> None:
    """Sends messages, one after the other, each with a tag and a key."""
    with Producer("mirrored", name_server=name_server) as producer:
        for number, body in enumerate(bodies):
            producer.send(Message(topic, body, tags=f"t{number % 3}", keys=f"k{number}", properties=properties))


def log_of(store: Path) -> tuple[int, bytes]:
    """Where a commit log begins, and its bytes to the end of the last record that is whole."""
    with open_store(store) as opened:
        begin, end = opened.info().min_offset, opened.info().max_offset
    files = sorted(path for path in (store / "commitlog").iterdir() if path.name.isdecimal())
    content = b"".join(path.read_bytes() for path in files)
    start = int(files[0].name)
    return begin, content[begin - start : end - start]


def assert_same(master: Path, copy: Path, *, queues: bool = True) -> None:
    """The copy has the log of its master, to its own last whole record, and its queues."""
    # the copy first: both may grow meanwhile
    copied_from, copied = log_of(copy)
    begin, log = log_of(master)
    common = max(begin, copied_from)
    assert copied
    assert copied[common - copied_from :] == log[common - begin :][: copied_from + len(copied) - common]
    if not queues:
        return
    # what came since is not compared: a master delivers delayed messages by itself
    end = copied_from + len(copied)

    def differing() -> list[str]:
        expected, found = units_of(master, before=end), units_of(copy, before=end)
        return sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))

    # both list messages a little behind their logs
    until(lambda: not differing(), differing)


def units_of(store: Path, *, before: int = 1 << 62) -> dict[str, bytes]:
    """The files of consume queues that list something before an offset of the log, by topic, queue and name."""
    root = store / "consumequeue"
    units: dict[str, bytes] = {}
    # queues of deleted topics may be removed meanwhile: `walk` passes over a directory that is gone
    for directory, _, names in os.walk(root):
        for path in (Path(directory, name) for name in names):
            with contextlib.suppress(FileNotFoundError):
                content = _units_before(before, path.read_bytes())
                if content.strip(b"\0"):
                    units[str(path.relative_to(root))] = content
    return units


def _units_before(offset: int, units: bytes) -> bytes:
    """Units as they are in the file, with zeroes in place of those that lead to the offset or behind it."""
    each = (units[at : at + 20] for at in range(0, len(units), 20))
    return b"".join(unit if int.from_bytes(unit[:8], "big") < offset else bytes(len(unit)) for unit in each)


def rows_of(store: Path, topic: str) -> list[dict[str, object]]:
    """The messages of a topic by queue and offset, without the columns that say where the log has them."""
    columns = [column for column in COLUMNS if column not in ("physical_offset", "offset_msg_id")]
    with open_store(store) as opened:
        rows: list[dict[str, object]] = []
        if topic in opened.topics():
            rows = opened.scan(topic, columns=columns).to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["queue_id"], row["queue_offset"]))


def ends_of(store: Path, topics: Sequence[str]) -> dict[str, dict[int, int]]:
    """The next offsets of these topics' queues that have messages."""
    with open_store(store) as opened:
        there = opened.topics()
    ends = {topic: {queue: end for queue, (_, end) in there.get(topic, {}).items() if end} for topic in topics}
    return {topic: queues for topic, queues in ends.items() if queues}


def caught_up(mirror: Mirror, master: Path) -> MirrorStatus:
    """Waits until all that is in the log of a master's store now is copied."""
    with open_store(master) as store:
        end = store.info().max_offset

    def has_all() -> MirrorStatus | None:
        mirror.wait(0)
        status = mirror.status()[0]
        return status if status.position >= end else None

    status = until(has_all, lambda: f"{end}: {mirror.status()}")
    assert status is not None
    return status


def lose_tail(store: Path, count: int) -> int:
    """Takes the last records from the store of a broker that was killed, as a loss of power does.

    Returns:
        Where the log ends then.
    """
    with open_store(store) as opened:
        places: list[int] = opened.scan(columns=["physical_offset"]).to_arrow()["physical_offset"].to_pylist()
    place = sorted(places)[-count]
    file = max(path for path in (store / "commitlog").iterdir() if path.name.isdecimal() and int(path.name) <= place)
    with file.open("r+b") as log:
        log.seek(place - int(file.name))
        log.write(bytes(file.stat().st_size - (place - int(file.name))))
    for later in (store / "commitlog").iterdir():
        if later.name.isdecimal() and int(later.name) > place:
            later.unlink()
    # what the broker makes of its queues and its checkpoint is its own affair
    return place
