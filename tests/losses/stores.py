"""Stores whose messages are known: of rmqfast's appender in many states, and of real brokers.

Files of the log, the queues, the index and the configuration are harmed; then the store is read, and appended to.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import rmqfast
from rmqfast import Message, RetentionOptions
from rmqfast.store import find_missing_end, repair
from tests import golden_stores
from tests.store.scanned import opened, plain_rows
from tests.store.small_store import copy_open_store

from .attempt import Attempt, SilentLoss
from .harmed_store import BEGIN, OPTIONS, HarmedStore, TrueStore
from .harms import harm_store
from .store_checks import Readers, append_and_judge

#: Small ones, in which a harm hits something, come more often.
_WEIGHT_OF_SMALL = 6
_QUEUES = {"orders": 4, "other": 1, "idle": 1, "%RETRY%group": 1}
_COUNT = 90


class Stores:
    """Small stores in many states, and stores of real brokers; each is made when it is wanted first."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="losses-true-stores-"))
        self._made: dict[str, TrueStore] = {}

    def attempt(self, chance: random.Random, directory: Path) -> Attempt:
        """Harms one store, one to three times, reads it by some faces, and appends to it."""
        weights = [1 if name in _GOLDEN else _WEIGHT_OF_SMALL for name in _MAKERS]
        true = self._store(chance.choices(list(_MAKERS), weights)[0])
        path = directory / "store"
        true.copy(path)
        records = list(true.rows)
        harms = [harm_store(chance, path, records) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
        text = f"{true.name}: {'; '.join(harms)}"
        harmed = HarmedStore(true, path)
        readers = Readers(harmed, text, chance, directory)
        try:
            readers.read()
            appended = append_and_judge(harmed, text, readers.readable)
        except SilentLoss:
            raise
        except Exception as error:
            error.add_note(text)
            raise
        return Attempt(text, readers.rows, readers.missing, readers.refused or not appended)

    def close(self) -> None:
        shutil.rmtree(self._directory)

    def _store(self, name: str) -> TrueStore:
        if name not in self._made:
            path = self._directory / name / "store"
            path.parent.mkdir()
            geometry = golden_stores.GEOMETRY
            golden = replace(OPTIONS, index_slots=geometry.slots, index_entries=geometry.entries)
            made = TrueStore(name, _MAKERS[name](path) or path, golden if name in _GOLDEN else OPTIONS)
            assert made.rows, name
            self._made[name] = made
        return self._made[name]


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
        copy_open_store(store.path, path)
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


_GOLDEN = ("offsets-4.9.4", "delaytx-4.9.4", "basic-4.9.4", "basic-5.3.3", "crash-4.9.4")
_MAKERS: dict[str, Callable[[Path], Path | None]] = {
    "closed": _closed,
    "bare": _bare,
    "killed": _killed,
    "torn": _torn,
    "of rocketmq": _of_rocketmq,
    "retained": _retained,
    "repaired": _repaired,
    "remade": _remade,
    **{name: _golden(name) for name in _GOLDEN},
}
