"""Reads a harmed store by each public face, and judges what comes: true rows, and each missing one told."""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq

import rmqfast
from rmqfast.errors import CorruptError, DamageWarning, StoreIOError, UnknownTopicError, UnsupportedStoreError
from rmqfast.message import Damage
from rmqfast.store import MessageStore, Scan
from rmqfast.store.parquet import write_parquet
from tests.reference.row import Row
from tests.store.scanned import plain_rows

from .attempt import SilentLoss, judge
from .harmed_store import HarmedStore

__all__ = ["Readers", "refusals"]

#: What a reader may raise in place of an answer.
refusals = (CorruptError, StoreIOError, UnsupportedStoreError, UnknownTopicError)
_LISTED = re.compile(r"; message (\d+) of queue (\d+) of topic (.*) is listed there$")
_UNIT_SIZE = 20


@dataclass
class Readers:
    """Reads one harmed store.

    Args:
        harmed: The store.
        harm: What was done, for the error.
        chance: Which topics, queues and keys are asked for.
        directory: For what exports write.
    """

    harmed: HarmedStore
    harm: str
    chance: random.Random
    directory: Path
    rows: int = 0
    missing: int = 0
    refused: bool = False
    #: Rows that a scan of all messages gave.
    readable: dict[int, Row] = field(default_factory=dict)

    def read(self) -> None:
        """Reads the store by all faces that go on with what this one opens."""
        with self._refusing():
            store = rmqfast.open_store(self.harmed.path, io=self.chance.choice(("pread", "mmap")))
            self._scan_all(store)
            self._look_at_bounds(store)
            for face in self.chance.sample(_FACES, 4):
                with self._refusing():
                    face(self, store)
            store.close()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DamageWarning)
                yield
        except refusals:
            self.refused = True

    def _judge(
        self, face: str, rows: dict[Any, Row], got: Iterable[tuple[Any, Row]], told: Callable[[Any], bool]
    ) -> None:
        there, missing = judge(f"{self.harm}: {face}", rows, got, told)
        self.rows, self.missing = self.rows + there, self.missing + missing

    def _judge_scan(self, face: str, scan: Scan, wanted: Callable[[Row], bool], *, checks: bool) -> list[Row]:
        got = plain_rows(scan.to_arrow())
        rows, optional = self.harmed.expected(wanted, checks=checks, of_all=wanted is _any)
        places = Places(scan.damage)
        told = lambda offset: offset in optional or places.have(self.harmed.true.rows[offset])  # noqa: E731
        self._judge(face, rows, ((row["physical_offset"], row) for row in got), told)
        return got

    def _scan_all(self, store: MessageStore) -> None:
        try:
            got = self._judge_scan("scan()", store.scan(verify_crc=True), _any, checks=True)
        except refusals:
            self.refused = True
            return
        self.readable = {row["physical_offset"]: row for row in got}
        report = store.verify()
        # nor can a check tell what retention removed
        kept = sum(offset >= self.harmed.begin for offset in self.harmed.true.rows)
        if report.ok and not report.notes and len(got) < kept:
            raise SilentLoss(f"{self.harm}: verify() is ok, and a scan gives {len(got)} of {kept} rows")

    def _look_at_bounds(self, store: MessageStore) -> None:
        """The queues have at least the offsets of the messages that are there."""
        with self._refusing():
            topics, notes = store.topics(), store.info().notes
            for topic, queues in self.harmed.true.bounds.items():
                if self.harmed.has_lost_light(topic):
                    continue
                for queue_id, (low, high) in queues.items():
                    if self.harmed.lists_others(topic, queue_id):
                        continue
                    got = topics.get(topic, {}).get(queue_id, (0, 0))
                    # one that says more leads whoever reads it to damage
                    is_less = (got[0] > low and low < high) or got[1] < high
                    is_kept = self.harmed.begin <= min(self.harmed.true.log)
                    if is_less and not notes and is_kept and self.is_whole(topic, queue_id):
                        raise SilentLoss(
                            f"{self.harm}: topics() has {got} for {topic} {queue_id}, expected {low, high}"
                        )

    def is_whole(self, topic: str, queue_id: int) -> bool:
        """Whether the messages of a queue are as they were."""
        is_of = _is_of(topic, queue_id)
        # a light queue has messages of other topics
        of_queue = (r for r in self.harmed.true.rows.values() if is_of(r) or _is_listed_in(r, topic))
        return all(row["physical_offset"] in self.harmed.whole for row in of_queue)

    def _topic(self) -> str:
        topic: str = self.chance.choice(sorted({row["topic"] for row in self.harmed.true.rows.values()}))
        return topic

    def _way(self) -> Literal["log", "queue"] | None:
        ways: tuple[Literal["log", "queue"] | None, ...] = (None, "log", "queue")
        return self.chance.choice(ways)

    def scan_topic(self, store: MessageStore) -> None:
        """A topic, by each way."""
        topic, way, crc = self._topic(), self._way(), self.chance.random() < 0.5
        scan = store.scan(topic, way=way, verify_crc=crc, threads=self.chance.choice((1, 1, 2)))
        self._judge_scan(f"scan({topic!r}, way={way!r}, verify_crc={crc})", scan, _is_of(topic), checks=crc)

    def scan_filtered(self, store: MessageStore) -> None:
        """Some messages of a topic."""
        topic, row = self._topic(), self.chance.choice(list(self.harmed.true.rows.values()))
        first = row["store_timestamp"]
        filters: Sequence[tuple[dict[str, Any], Callable[[Row], bool]]] = (
            ({"tags": "t0 || late"}, lambda r: r["tags"] in {"t0", "late"}),
            ({"keys": ["k7", "o9", "U000008"]}, _has_key({"k7", "o9", "U000008"})),
            ({"keys_prefix": "k1"}, lambda r: any(key.startswith("k1") for key in _keys(r))),
            ({"start_time": first}, lambda r: r["store_timestamp"] >= first),
            ({"end_time": first}, lambda r: r["store_timestamp"] < first),
            ({"queue_ids": [1]}, lambda r: r["queue_id"] == 1),
            ({"start_offset": 5, "end_offset": 9}, lambda r: 5 <= r["queue_offset"] < 9),
            ({"sql": "a = '7'"}, lambda r: r["properties"].get("a") == "7"),
        )
        arguments, wanted = self.chance.choice(filters)
        way = self._way()
        scan = store.scan(topic, way=way, verify_crc=True, **arguments)
        self._judge_scan(
            f"scan({topic!r}, way={way!r}, {arguments})", scan, lambda r: _is_of(topic)(r) and wanted(r), checks=True
        )

    def get(self, store: MessageStore) -> None:
        """A queue, by pulls."""
        topic = self._topic()
        queue_id, (low, _) = self.chance.choice(sorted(self.harmed.true.bounds.get(topic, {0: (0, 0)}).items()))
        at, end, got, damage = low, low + 1, [], []
        while at < end:
            result = store.get(topic, queue_id, at, max_messages=self.chance.choice((7, 32)))
            damage += result.damage
            got += [(m.physical_offset, _plain(m)) for m in result.messages]
            if result.next_begin_offset <= at and result.messages:
                raise SilentLoss(f"{self.harm}: get({topic!r}, {queue_id}, {at}) goes on at {result.next_begin_offset}")
            if result.next_begin_offset <= at:
                break
            at, end = result.next_begin_offset, result.max_offset
        face = f"get({topic!r}, {queue_id}) from {low}"
        rows, optional = self.harmed.expected(_is_of(topic, queue_id), checks=False)
        places, notes = Places(damage), store.info().notes
        told = lambda offset: offset in optional or bool(notes) or places.have(self.harmed.true.rows[offset])  # noqa: E731
        self._judge(face, rows, got, told)

    def query(self, store: MessageStore) -> None:
        """The messages of a key."""
        row = self.chance.choice(list(self.harmed.true.rows.values()))
        topic, keys = row["topic"], _keys(row)
        if not keys:
            return
        key = self.chance.choice(sorted(keys))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got = [(m.physical_offset, _plain(m)) for m in store.query(topic, key, max_messages=1000)]
        wanted = _has_key({key})
        rows, optional = self.harmed.expected(lambda r: r["topic"] == topic and wanted(r))
        told = lambda offset: offset in optional or bool(caught) or self.harmed.is_index_harmed  # noqa: E731
        self._judge(f"query({topic!r}, {key!r})", rows, got, told)

    def by_id(self, store: MessageStore) -> None:
        """A message by each of its ids."""
        row = self.chance.choice(list(self.harmed.true.rows.values()))
        message_id = row[self.chance.choice(("msg_id", "offset_msg_id"))]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = _plain(store.message_by_id(message_id))
            except rmqfast.errors.UnknownMessageError:
                got = []
            else:
                got = [(found["physical_offset"], found)]
        rows, optional = self.harmed.expected(lambda r: message_id in {r["msg_id"], r["offset_msg_id"]})
        # of several with one id any is right
        is_told = bool(got or caught) or self.harmed.is_index_harmed
        told = lambda missing: is_told or missing in optional  # noqa: E731
        self._judge(f"message_by_id({message_id!r})", rows, got, told)

    def offset_for_time(self, store: MessageStore) -> None:
        """The offset for a time, where nothing of the queue is harmed in the log."""
        row = self.chance.choice(list(self.harmed.true.rows.values()))
        topic, queue_id, when = row["topic"], row["queue_id"], row["store_timestamp"] + self.chance.randrange(2)
        got = store.offset_for_time(topic, queue_id, when)
        listed = (self.harmed.true.rows[offset] for offset in self.harmed.true.listed)
        of_queue = list(filter(_is_of(topic, queue_id), listed))
        if not self.is_whole(topic, queue_id) or store.info().notes:
            return
        later = [r["queue_offset"] for r in of_queue if r["store_timestamp"] >= when]
        expected = min(later, default=self.harmed.true.bounds[topic][queue_id][1])
        # whoever reads where a unit leads astray hears of it
        doubted = range(got, expected)
        if got > expected or not all(self.harmed.is_unit_harmed(topic, queue_id, offset) for offset in doubted):
            raise SilentLoss(
                f"{self.harm}: offset_for_time({topic!r}, {queue_id}, {when}) is {got}, expected {expected}"
            )

    def export_store(self, store: MessageStore) -> None:
        """A new store of all messages, or of a topic."""
        topic, out = self.chance.choice((None, self._topic())), self.directory / "exported"
        try:
            report = store.export(out, topic)
            got = plain_rows(rmqfast.open_store(out).scan().to_arrow()) if report.rows else []
        finally:
            shutil.rmtree(out, ignore_errors=True)
        self._judge_moved(f"export({topic!r})", topic, got, report.damage)

    def export_lines(self, store: MessageStore) -> None:
        """JSON lines of all messages."""
        text = io.StringIO()
        report = store.export(text, format="jsonl")
        offsets: list[tuple[int, Row]] = [
            (json.loads(line)["physical_offset"], {}) for line in text.getvalue().splitlines()
        ]
        self._judge_offsets("export(format='jsonl')", offsets, report.damage)

    def parquet(self, store: MessageStore) -> None:
        """Parquet files."""
        out = self.directory / "parquet"
        try:
            report = write_parquet(store, out, on_damage="warn")
            tables = [
                pq.read_table(file, columns=["physical_offset"], partitioning=None) for file in out.rglob("*.parquet")
            ]
            got: list[tuple[int, Row]] = [
                (offset, {}) for table in tables for offset in table["physical_offset"].to_pylist()
            ]
        finally:
            shutil.rmtree(out, ignore_errors=True)
        self._judge_offsets("write_parquet", got, report.damage, checks=False)

    def _judge_offsets(
        self, face: str, got: Iterable[tuple[int, Row]], damage: Iterable[Damage], *, checks: bool = True
    ) -> None:
        rows, optional = self.harmed.expected(_any, checks=checks, of_all=True)
        places = Places(damage)
        told = lambda offset: offset in optional or places.have(self.harmed.true.rows[offset])  # noqa: E731
        self._judge(face, {offset: {} for offset in rows}, got, told)

    def _judge_moved(self, face: str, topic: str | None, got: list[Row], damage: Iterable[Damage]) -> None:
        """Rows whose places are new ones; those that look the same are counted."""
        rows, optional = self.harmed.expected(_any if topic is None else _is_of(topic), of_all=topic is None)
        places, numbers = Places(damage), Counter[Any]()
        keys = {}
        for offset in rows:
            keys[_numbered(rows[offset], numbers)] = offset
        numbers.clear()
        told = lambda key: keys[key] in optional or places.have(self.harmed.true.rows[keys[key]])  # noqa: E731
        self._judge(face, {key: {} for key in keys}, ((_numbered(row, numbers), {}) for row in got), told)


_FACES: tuple[Callable[[Readers, MessageStore], None], ...] = (
    Readers.scan_topic,
    Readers.scan_topic,
    Readers.scan_filtered,
    Readers.get,
    Readers.query,
    Readers.by_id,
    Readers.offset_for_time,
    Readers.export_store,
    Readers.export_lines,
    Readers.parquet,
)


class Places:
    """Places that a reading said it could not use."""

    def __init__(self, damage: Iterable[Damage]) -> None:
        self._log: list[tuple[int, int]] = []
        self._queues: list[tuple[str, int, int, int]] = []
        for place in damage:
            if listed := _LISTED.search(place.reason):
                offset, queue_id, topic = listed.groups()
                self._queues.append((topic, int(queue_id), int(offset), int(offset) + 1))
            path, end = Path(place.file), place.offset + max(place.length, 1)
            if "or behind" in place.reason:
                # the end of the log is lost, and what says so knows of no record behind
                end = 1 << 63
            if path.parent.parent.parent.name == "consumequeue":
                topic, queue_id = path.parent.parent.name, int(path.parent.name)
                self._queues.append((topic, queue_id, place.offset // _UNIT_SIZE, -(-end // _UNIT_SIZE)))
            else:
                self._log.append((place.offset, end))

    def have(self, row: Row) -> bool:
        """Whether the message of a row stands in one of them."""
        start, end = row["physical_offset"], row["physical_offset"] + row["store_size"]
        of_queue = (place for place in self._queues if _is_of(*place[:2])(row))
        return any(first < end and behind > start for first, behind in self._log) or any(
            first <= row["queue_offset"] < behind for _, _, first, behind in of_queue
        )


def _any(_: Row) -> bool:
    return True


def _is_listed_in(row: Row, topic: str) -> bool:
    return topic in row["properties"].get("INNER_MULTI_DISPATCH", "").split(",")


def _is_of(topic: str, queue_id: int | None = None) -> Callable[[Row], bool]:
    """Whether a message has a place in a queue of a topic: half messages, and what was rolled back, have none."""
    return lambda row: (
        row["topic"] == topic and queue_id in {None, row["queue_id"]} and row["sys_flag"] & 12 not in {4, 12}
    )


def _keys(row: Row) -> set[str]:
    found = set((row["keys"] or "").split())
    return found | {row["properties"]["UNIQ_KEY"]} if "UNIQ_KEY" in row["properties"] else found


def _has_key(keys: set[str]) -> Callable[[Row], bool]:
    return lambda row: bool(_keys(row) & keys)


def _plain(message: rmqfast.MessageExt) -> Row:
    row = {name: getattr(message, name) for name in message.__slots__}
    return row | {"properties": dict(message.properties)}


def _numbered(row: Row, numbers: Counter[Any]) -> tuple[Any, ...]:
    """A row without its place, and how many such came before."""
    names = ("topic", "queue_id", "queue_offset", "store_timestamp", "body", "tags", "keys", "sys_flag")
    key = tuple(row[name] for name in names)
    numbers[key] += 1
    return (*key, numbers[key])
