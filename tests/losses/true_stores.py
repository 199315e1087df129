"""Stores whose messages are known, to be harmed: of rmqfast's appender in many states, and of real brokers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Final

import rmqfast
from rmqfast import AppendOptions, Message, RetentionOptions
from rmqfast.store import find_missing_end, repair
from tests import golden_stores
from tests.reference.row import Row
from tests.store.scanned import opened, plain_rows

__all__ = ["OPTIONS", "TrueStore", "TrueStores"]

OPTIONS = AppendOptions(
    file_size=1 << 14, queue_file_size=600, index_slots=16, index_entries=100, zone_offset_ms=0, multi_dispatch=True
)
#: When the first message is stored.
BEGIN: Final = 1_700_000_000_000
_QUEUES = {"orders": 4, "other": 1, "idle": 1, "%RETRY%group": 1}
_COUNT = 90


@dataclass(frozen=True)
class TrueStore:
    """A store, and what it holds."""

    name: str
    path: Path
    options: AppendOptions

    @cached_property
    def rows(self) -> dict[int, Row]:
        """The messages by physical offset, in the order of the log."""
        scan = opened(self.path).scan(verify_crc=True)
        rows = {row["physical_offset"]: row for row in plain_rows(scan.to_arrow())}
        assert scan.damage == [] or self.name == "torn", self.name
        return rows

    @cached_property
    def listed(self) -> set[int]:
        """Those of them that have a place in a queue of their topic; not those of a topic that was removed since."""
        store = opened(self.path)
        scans = (store.scan(topic, way="queue", columns=["physical_offset"]) for topic in self.bounds)
        return {offset for scan in scans for offset in scan.to_arrow()["physical_offset"].to_pylist()}

    @cached_property
    def bounds(self) -> dict[str, dict[int, tuple[int, int]]]:
        """The queues, and their least and greatest offsets."""
        return opened(self.path).topics()

    @cached_property
    def log(self) -> dict[int, bytes]:
        """The files of the log by their offsets."""
        return {int(file.name): file.read_bytes() for file in sorted((self.path / "commitlog").iterdir())}

    def copy(self, path: Path) -> None:
        """Copies the store, the holes of its files as holes."""
        for directory, _, names in os.walk(self.path):
            target = path / Path(directory).relative_to(self.path)
            target.mkdir(parents=True)
            for name in names:
                _copy_sparse(Path(directory, name), target / name)


def _copy_sparse(source: Path, target: Path) -> None:
    content = source.read_bytes()
    with target.open("wb") as file:
        file.write(content.rstrip(b"\0"))
        file.truncate(len(content))


class TrueStores:
    """All of them, each made when it is wanted first, below a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._made: dict[str, TrueStore] = {}

    def store(self, name: str) -> TrueStore:
        """The store of a name."""
        if name not in self._made:
            path = self._directory / name / "store"
            path.parent.mkdir()
            golden = replace(
                OPTIONS, index_slots=golden_stores.GEOMETRY.slots, index_entries=golden_stores.GEOMETRY.entries
            )
            made = TrueStore(name, _MAKERS[name](path) or path, golden if name in golden_stores.NAMES else OPTIONS)
            assert made.rows, name
            self._made[name] = made
        return self._made[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all."""
        return tuple(_MAKERS)


def _clock() -> Callable[[], int]:
    return count(BEGIN, 1000).__next__


def _messages(number: int = _COUNT) -> Iterator[Message]:
    """Messages of several topics: with and without tags and keys, short and long, delayed, in a light queue."""
    for n in range(number):
        keys = [f"k{n}", "all"] if n % 3 else []
        properties = {"UNIQ_KEY": f"U{n:06}"} if n % 4 == 0 else {"a": f"{n}"}
        tag = f"t{n % 3}" if n % 5 else None
        body = b"%d " % n * (n * 7 % 60)
        yield Message("orders", body, tags=tag, keys=keys, properties=properties, queue_id=n % 4)
        yield Message(
            "other", b"body", keys=f"o{n}", properties={"INNER_MULTI_DISPATCH": "%LMQ%light"} if n % 9 == 0 else {}
        )
        if n % 8 == 1:
            yield Message("%RETRY%group", b"again", tags="t1", properties={"ORIGIN": "orders"})
        if n % 10 == 3:
            yield Message("orders", b"late", delay_level=1 + n % 4, tags="late", queue_id=1)
        if n == 5:
            yield Message("idle", b"once", keys="idle")


def _append(store: rmqfast.WritableStore, number: int = _COUNT) -> None:
    for n, message in enumerate(_messages(number)):
        store.append(message)
        if n % 40 == 20:
            # a half message and one that was rolled back have no place in a queue
            store.append(Message("orders", b"half"), sys_flag=4)
            store.append(Message("orders", b"back"), sys_flag=12, prepared_transaction_offset=7)


def _open(path: Path, clock: Callable[[], int] | None = None) -> rmqfast.WritableStore:
    return rmqfast.open_store(path, mode="a", options=OPTIONS, clock=clock or _clock())


def _configure(path: Path, queues: dict[str, int] | None = None) -> None:
    """The files of `config/` as a broker writes them."""
    topics = {
        name: {"topicName": name, "readQueueNums": count, "writeQueueNums": count, "perm": 6}
        for name, count in (_QUEUES if queues is None else queues).items()
    }
    offsets = {"orders@group": {str(n): 3 for n in range(4)}, "%RETRY%group@group": {"0": 1}}
    tables = {
        "topics.json": {"topicConfigTable": topics, "dataVersion": {"counter": 3, "timestamp": BEGIN}},
        "consumerOffset.json": {"offsetTable": offsets},
        "delayOffset.json": {"offsetTable": {"1": 1}},
        "subscriptionGroup.json": {"subscriptionGroupTable": {"group": {"groupName": "group"}}},
    }
    (path / "config").mkdir(exist_ok=True)
    for name, table in tables.items():
        (path / "config" / name).write_text(json.dumps(table))


def _closed(path: Path) -> None:
    with _open(path) as store:
        _append(store)
    _configure(path)


def _bare(path: Path) -> None:
    with _open(path) as store:
        _append(store)


def _killed(path: Path) -> None:
    """A copy of one that is open."""
    with _open(path.with_name("live")) as store:
        _append(store)
        store.flush()
        shutil.copytree(store.path, path)
    _configure(path)


def _torn(path: Path) -> None:
    """A copy with a half-written append, as after a crash."""
    _killed(path)
    last = max((path / "commitlog").iterdir())
    end = len(last.read_bytes().rstrip(b"\0"))
    with last.open("r+b") as file:
        file.seek(end)
        file.write(last.read_bytes()[:3])


def _of_rocketmq(path: Path) -> None:
    """One whose checkpoint says no offset, as RocketMQ's does not."""
    _closed(path)
    (path / "queue.ends").unlink()
    checkpoint = path / "checkpoint"
    checkpoint.write_bytes(checkpoint.read_bytes()[:4064].ljust(4096, b"\0"))


def _retained(path: Path) -> None:
    """One whose oldest files retention has removed."""
    now = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
    keep = RetentionOptions(file_reserved_hours=24)
    with rmqfast.open_store(path, mode="a", options=OPTIONS, clock=_clock(), retention=keep) as store:
        _append(store)
        os.utime(min((path / "commitlog").iterdir()), (BEGIN / 1000, BEGIN / 1000))
        assert store.clean(now=now, manual=True).log_files > 0
    _configure(path)


def _repaired(path: Path) -> None:
    """One that lost its end, which was given up, and that was appended to since."""
    _closed(path)
    max((path / "commitlog").iterdir()).write_bytes(b"")
    missing = find_missing_end(path)
    assert missing is not None
    assert repair(path, options=OPTIONS, cut_at=missing.log_end).left_out > 0
    with _open(path, count(BEGIN + 10**9, 1000).__next__) as store:
        _append(store, 20)


def _remade(path: Path) -> None:
    """One of which a topic was removed, and made anew."""
    _closed(path)
    end = rmqfast.open_store(path).info().max_offset
    shutil.rmtree(path / "consumequeue/other")
    removed = {"removedTopics": {"other": {"at": BEGIN + 10**8, "before": end}}}
    (path / "config/removedTopics.json").write_text(json.dumps(removed))
    with _open(path, count(BEGIN + 10**9, 1000).__next__) as store:
        _append(store, 30)


def _golden(name: str) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        store = golden_stores.unpack(name, path.parent)
        rows = plain_rows(opened(store).scan(verify_crc=True).to_arrow())
        # RocketMQ's own classes say so
        assert list(golden_stores.differences(rows, golden_stores.expected_rows(name))) == []
        return store

    return make


_MAKERS: dict[str, Callable[[Path], Path | None]] = {
    "closed": _closed,
    "bare": _bare,
    "killed": _killed,
    "torn": _torn,
    "of rocketmq": _of_rocketmq,
    "retained": _retained,
    "repaired": _repaired,
    "remade": _remade,
    **{name: _golden(name) for name in ("offsets-4.9.4", "delaytx-4.9.4", "basic-4.9.4", "basic-5.3.3", "crash-4.9.4")},
}
