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
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq

import rmqfast
from rmqfast import Message
from rmqfast.errors import (
    ArgumentError,
    CorruptError,
    DamageWarning,
    StoreIOError,
    UnknownTopicError,
    UnsupportedStoreError,
)
from rmqfast.message import Damage
from rmqfast.store import MessageStore, RecoveryReport, Scan, find_missing_end, repair
from rmqfast.tables import ingest
from tests.reference.row import Row
from tests.store.scanned import plain_rows

from .attempt import SilentLoss, judge
from .harmed_store import BEGIN, HarmedStore

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
            store = rmqfast.open_store(self.harmed.path, io=self.chance.choice(("auto", "pread", "mmap")))
            self._scan_all(store)
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

    def _told(self, damage: Iterable[Damage], optional: set[int], *, always: bool = False) -> Callable[[int], bool]:
        """Whether a reader reported a row: by the places that it could not use, or by all that is written of it."""
        places = Places(damage)
        return lambda offset: always or offset in optional or places.have(self.harmed.true.rows[offset])

    def _judge_scan(self, face: str, scan: Scan, wanted: Callable[[Row], bool], *, checks: bool) -> list[Row]:
        got = plain_rows(scan.to_arrow())
        rows, optional = self.harmed.expected(wanted, checks=checks, of_all=wanted is _any)
        self._judge(face, rows, ((row["physical_offset"], row) for row in got), self._told(scan.damage, optional))
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
        rows, optional = self.harmed.expected(_is_of(topic, queue_id), checks=False)
        told = self._told(damage, optional, always=bool(store.info().notes))
        self._judge(f"get({topic!r}, {queue_id}) from {low}", rows, got, told)

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
        told = self._told((), optional, always=bool(caught) or self.harmed.is_index_harmed)
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
        told = self._told((), optional, always=bool(got or caught) or self.harmed.is_index_harmed)
        self._judge(f"message_by_id({message_id!r})", rows, got, told)

    def export_store(self, store: MessageStore) -> None:
        """A new store of all messages, or of a topic, whose rows have other places."""
        topic, out = self.chance.choice((None, self._topic())), self.directory / "exported"
        try:
            report = store.export(out, topic)
            got = plain_rows(rmqfast.open_store(out).scan().to_arrow()) if report.rows else []
        finally:
            shutil.rmtree(out, ignore_errors=True)
        rows, optional = self.harmed.expected(_any if topic is None else _is_of(topic), of_all=topic is None)
        numbers, told = Counter[Any](), self._told(report.damage, optional)
        keys = {_numbered(row, numbers): offset for offset, row in rows.items()}
        numbers.clear()
        found = ((_numbered(row, numbers), Row()) for row in got)
        self._judge(f"export({topic!r})", dict.fromkeys(keys, Row()), found, lambda key: told(keys[key]))

    def export_offsets(self, store: MessageStore) -> None:
        """JSON lines, or Parquet files, of all messages."""
        damage: Iterable[Damage]
        if self.chance.random() < 0.5:
            text = io.StringIO()
            face, report = "export(format='jsonl')", store.export(text, format="jsonl")
            got = [json.loads(line)["physical_offset"] for line in text.getvalue().splitlines()]
            damage = report.damage
        else:
            face, out = "ingest", self.directory / "parquet"
            try:
                damage = ingest(store, out, on_damage="warn").damage
                files = [
                    pq.read_table(file, columns=["physical_offset"], partitioning=None)
                    for file in out.rglob("*.parquet")
                ]
                got = [offset for table in files for offset in table["physical_offset"].to_pylist()]
            finally:
                shutil.rmtree(out, ignore_errors=True)
        rows, optional = self.harmed.expected(_any, checks=face != "ingest", of_all=True)
        found = ((offset, Row()) for offset in got)
        self._judge(face, dict.fromkeys(rows, Row()), found, self._told(damage, optional))


_FACES: tuple[Callable[[Readers, MessageStore], None], ...] = (
    Readers.scan_topic,
    Readers.scan_topic,
    Readers.scan_filtered,
    Readers.get,
    Readers.query,
    Readers.by_id,
    Readers.export_store,
    Readers.export_offsets,
    Readers.export_offsets,
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


_BODY = b"appended to a harmed store"
#: Topic, queue, offset.
_Place = tuple[str, int, int]


def append_and_judge(harmed: HarmedStore, harm: str, readable: dict[int, Row]) -> bool:
    """Appends to each queue, opens again, and reads; False where the store refuses by name.

    Args:
        harmed: The store.
        harm: What was done, for the error.
        readable: The messages that a scan gave before, by physical offset.
    """
    clock = count(BEGIN + 10**10, 1000).__next__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        try:
            opening = _opened(harmed)
        except (CorruptError, StoreIOError, UnsupportedStoreError):
            return False
        with rmqfast.open_store(harmed.path, mode="a", options=harmed.true.options, clock=clock) as store:
            reports = [report for report in (opening, store.recovery) if report is not None]
            given: dict[int, _Place] = {}
            for topic, queues in harmed.true.bounds.items():
                is_delayed = topic == "SCHEDULE_TOPIC_XXXX"
                for queue_id in queues if not topic.startswith("%LMQ%") else ():
                    name, level = ("orders", queue_id + 1) if is_delayed else (topic, 0)
                    place = store.append(Message(name, _BODY, delay_level=level, queue_id=queue_id))
                    given[place.physical_offset] = (topic, queue_id, place.queue_offset)
        for topic, queue_id, offset in given.values():
            end = harmed.true.bounds[topic][queue_id][1]
            is_again = offset < end and harmed.knows(topic, queue_id, offset)
            if is_again and not _was_never_flushed(harmed, (topic, queue_id, offset), reports):
                raise SilentLoss(f"{harm}: offset {offset} of {topic} {queue_id} was given again, which had {end}")
        with rmqfast.open_store(harmed.path, mode="a", options=harmed.true.options, clock=clock) as store:
            if store.recovery is not None:
                raise SilentLoss(f"{harm}: a store that was closed was recovered: {store.recovery}")
        _judge_rows(harmed, harm, {} if any(report.cut_bytes for report in reports) else readable, given)
    return True


def _opened(harmed: HarmedStore) -> RecoveryReport | None:
    """Opens the store to append, or repairs it; returns what that did."""
    path, options = harmed.path, harmed.true.options
    try:
        with rmqfast.open_store(path, mode="a", options=options) as store:
            return store.recovery
    except (CorruptError, ArgumentError) as error:
        # of an index that tells no sizes
        if isinstance(error, ArgumentError) and "rmqfast store repair" not in str(error):
            raise
        missing = find_missing_end(path)
        return repair(path, options=options, cut_at=None if missing is None else missing.log_end)


def _was_never_flushed(harmed: HarmedStore, place: _Place, reports: list[RecoveryReport]) -> bool:
    """Whether the messages from an offset on stood at the end of a log that nothing says was flushed, after a crash.

    Recovery cuts the end off behind its last whole record, and says so: nobody had been told that it was stored.
    """
    # a log that goes on in a new file says its end there
    cuts = [min(report.log_end, harmed.written_to - report.cut_bytes) for report in reports if report.cut_bytes]
    if not harmed.was_open or harmed.has_flushed_end or not cuts:
        return False
    topic, queue_id, offset = place
    rows = (row for row in harmed.whole.values() if (row["topic"], row["queue_id"]) == (topic, queue_id))
    return all(row["physical_offset"] >= min(cuts) for row in rows if row["queue_offset"] >= offset)


def _judge_rows(harmed: HarmedStore, harm: str, kept: dict[int, Row], given: dict[int, _Place]) -> None:
    """All messages that were kept are there, and those that were appended; by the log and by queue."""
    with rmqfast.open_store(harmed.path) as store:
        after = {row["physical_offset"]: row for row in plain_rows(store.scan(verify_crc=True).to_arrow())}
        gone = [offset for offset, row in kept.items() if after.get(offset) != row]
        if gone:
            raise SilentLoss(f"{harm}: {len(gone)} of {len(kept)} messages are gone by an append, the first {gone[0]}")
        for offset, (topic, queue_id, queue_offset) in given.items():
            row = after.get(offset, {})
            got = row.get("topic"), row.get("queue_id"), row.get("queue_offset"), row.get("body")
            if got != (topic, queue_id, queue_offset, _BODY):
                raise SilentLoss(f"{harm}: appended {topic} {queue_id} {queue_offset} at {offset}, got {got}")
            found = store.get(topic, queue_id, queue_offset).messages
            if [message.physical_offset for message in found[-1:]] != [offset]:
                raise SilentLoss(f"{harm}: get({topic!r}, {queue_id}, {queue_offset}) does not give what was appended")
        for topic in {topic for topic, *_ in given.values()}:
            scan = store.scan(topic, way="queue", columns=["physical_offset"])
            own = {offset for offset, place in given.items() if place[0] == topic}
            if missing := own - set(scan.to_arrow()["physical_offset"].to_pylist()):
                raise SilentLoss(f"{harm}: a scan by queue of {topic} lacks {missing}, which were appended")
