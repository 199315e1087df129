"""Checkpoints of Spark streams harmed, of topics with a past: by what both sources ask, without a Spark session.

For each queue a stream reads every message behind its offset once. Where it does not, an error or a warning names the
queue: messages that are lost, that are read again, that nobody reads. A text that is no offset of the topic is refused.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rmqfast._native import SparkStream
from rmqfast.errors import ArgumentError, DataLossError, RmqError

from .attempt import Attempt, SilentLoss
from .checkpoint_harms import harm, without_times
from .checkpoint_topics import Place, Row, Topic, read_of, rows_of, topics_with_a_past
from .store_checkpoints import StoreCheckpoints
from .told import warnings_told

__all__ = ["CheckpointSubject"]

#: Batches until nothing comes any more.
_MOST_BATCHES = 8
_BROKER = "broker-a"
#: One of them is in an error that tells of a checkpoint, or of what a queue has lost.
_WORDS = "checkpoint|messages are lost"


class CheckpointSubject:
    """Topics that lived on while their streams stood still."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._stores = StoreCheckpoints()
        self._stack.callback(self._stores.close)
        directory = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="losses-checkpoints-"))
        self._name_server, self._topics = self._stack.enter_context(topics_with_a_past(Path(directory) / "store"))

    def close(self) -> None:
        """Ends the broker."""
        self._stack.close()

    def attempt(self, chance: random.Random, _: Path) -> Attempt:
        """Harms a checkpoint, and has a stream go on from there."""
        if chance.randrange(4) == 0:
            return self._stores.attempt(chance)
        topic = chance.choice(self._topics)
        number = chance.randrange(len(topic.positions))
        way = chance.choice((*["latest"] * 3, "old PySpark", "planned again", "planned again"))
        texts = topic.positions[number : number + 2] if way == "planned again" else [topic.positions[number]]
        words = "as it was"
        if chance.randrange(4) == 0:
            texts, words = [without_times(text) for text in texts], "without times"
        if chance.randrange(8):
            at = chance.randrange(len(texts))
            texts[at], how = harm(texts[at], chance.choice(self._topics).positions[0], chance)
            words = f"{words}, {how}"
        is_strict = chance.randrange(2) == 0
        place = f"topic {topic.name} ({topic.life}), position {number}, {words}: {' to '.join(texts)[:300]}"
        where = f"{'strict' if is_strict else 'lax'}, {way}: {place}"
        return _Run(where, self._name_server, topic, is_strict=is_strict).judged(texts, way)


@dataclass(frozen=True)
class _Run:
    """A stream that goes on from a checkpoint.

    Args:
        where: The topic and the harm, for errors.
        name_server: Of the broker.
        topic: What is read.
        is_strict: `failOnDataLoss`.
    """

    where: str
    name_server: str
    topic: Topic
    is_strict: bool

    def judged(self, texts: Sequence[str], way: str) -> Attempt:
        """Reads all there is, and compares."""
        with warnings_told() as told:
            try:
                rows = list(self._read(texts, way))
            except RmqError as error:
                return self._refused(texts, error)
            except BaseException as error:
                raise SilentLoss(f"{self.where}: expected an error of rmqfast, got {error!r}") from error
        positions = self._positions(texts)
        if positions is None:
            raise SilentLoss(f"{self.where}: expected an error, got {len(rows)} rows")
        seen = self._checked_rows(rows, told)
        missing = sum(self._judge_queue(queue_id, positions, seen, told) for queue_id in self.topic.bounds)
        self._judge_others(positions[-1], told)
        backwards = [queue_id for queue_id in self.topic.bounds if self._goes_back(queue_id, positions)]
        if any(not self._own(queue_id, told) for queue_id in backwards):
            raise SilentLoss(f"{self.where}: the batch ends before it begins, and nobody is told: {told}")
        if self._is_sound(positions) and not backwards and told:
            raise SilentLoss(f"{self.where}: nothing is wrong, and a warning says {told}")
        return Attempt(self.where, rows=len(rows), missing=missing, refused=False)

    def _positions(self, texts: Sequence[str]) -> list[_Position] | None:
        """The positions in the texts; None if one is no checkpoint."""
        positions = [_parsed(text, self.topic.name) for text in texts]
        return None if None in positions else [position for position in positions if position is not None]

    def _read(self, texts: Sequence[str], way: str) -> Iterator[tuple[Place, Row]]:
        strict = "true" if self.is_strict else "false"
        read = read_of(self.name_server, self.topic.name, "topic stream", failOnDataLoss=strict)
        stream = SparkStream.of_topic(read)
        try:
            # a run that ended before its last batch was stored: the next one plans that first
            for start, end in pairwise(texts):
                for piece in stream.pieces(start, end):
                    yield from rows_of(read, piece)
            text = texts[-1]
            for _ in range(_MOST_BATCHES):
                is_old = way == "old PySpark"
                end = stream.latest(None if is_old else text, is_limited=not is_old)
                for piece in stream.pieces(text, end):
                    yield from rows_of(read, piece)
                if end == text:
                    return
                text = end
            raise SilentLoss(f"{self.where}: no end after {_MOST_BATCHES} batches, at {text}")
        finally:
            stream.close()

    def _refused(self, texts: Sequence[str], error: RmqError) -> Attempt:
        """An error is right where the checkpoint is none, or says what its topic is not."""
        if not isinstance(error, ArgumentError | DataLossError) or not re.search(_WORDS, str(error)):
            raise SilentLoss(f"{self.where}: expected an error that tells of the checkpoint, got {error!r}") from error
        positions = self._positions(texts)
        if positions is not None and self._is_sound(positions):
            raise SilentLoss(f"{self.where}: nothing is wrong, and it is refused: {error}") from error
        if not self.is_strict and isinstance(error, DataLossError):
            raise SilentLoss(f"{self.where}: failOnDataLoss=false, and it is refused: {error}") from error
        return Attempt(self.where, rows=0, missing=0, refused=True)

    def _checked_rows(self, rows: Sequence[tuple[Place, Row]], told: Sequence[str]) -> set[Place]:
        seen: set[Place] = set()
        for place, row in rows:
            if place in seen and not self._own(place[0], told):
                raise SilentLoss(f"{self.where}: the row {place} was returned twice")
            if self.topic.rows.get(place) != row:
                raise SilentLoss(f"{self.where}: the row {place} is {row!r}, expected {self.topic.rows.get(place)!r}")
            seen.add(place)
        return seen

    def _own(self, queue_id: int, told: Sequence[str]) -> list[str]:
        return [line for line in told if re.search(rf"broker {_BROKER}, queue {queue_id}[:,]", line)]

    def _judge_queue(self, queue_id: int, positions: Sequence[_Position], seen: set[Place], told: Sequence[str]) -> int:
        """The number of missing and of reported messages of a queue."""
        first, last = self.topic.bounds[queue_id]
        read = sorted(offset for of, offset in seen if of == queue_id)
        if read != list(range(last - len(read), last)):
            raise SilentLoss(f"{self.where}: queue {queue_id}, {first} to {last}: expected all from one on, got {read}")
        start, own = last - len(read), self._own(queue_id, told)
        offsets = [position.offsets.get((_BROKER, queue_id)) for position in positions]
        place = f"{self.where}: queue {queue_id} at {offsets}, of {first} to {last}, read from {start}"
        # a queue that joined with the batch had nothing to read in it
        if offsets == [None, first] or all(self._is_plausible(queue_id, position) for position in positions):
            # no fact contradicts these offsets: all from there on, and nothing else
            if start != min(offset for offset in offsets if offset is not None):
                raise SilentLoss(f"{place}: expected all from there on: {own}")
            return 0
        if not own and (read or None not in offsets):
            raise SilentLoss(f"{place}: nobody is told: {told}")
        if self.is_strict and None not in offsets:
            raise SilentLoss(f"{place}: expected an error, got {own}")
        if read and start not in offsets and not any(re.search(rf"\b{start}\b", line) for line in own):
            raise SilentLoss(f"{place}: that is not what is told: {own}")
        return start - first

    def _is_sound(self, positions: Sequence[_Position]) -> bool:
        """Whether no fact contradicts any offset."""
        return all(
            self._is_plausible(queue_id, position) for position in positions for queue_id in self.topic.bounds
        ) and not any(self._strangers(position) for position in positions)

    def _goes_back(self, queue_id: int, positions: Sequence[_Position]) -> bool:
        offsets = [position.offsets.get((_BROKER, queue_id)) for position in positions]
        numbers = [offset for offset in offsets if offset is not None]
        return numbers != sorted(numbers)

    def _judge_others(self, position: _Position, told: Sequence[str]) -> None:
        """Queues that the topic does not have."""
        for broker, queue_id in self._strangers(position):
            lines = [line for line in told if f"broker {broker}" in line]
            if broker == _BROKER and self._has_left(queue_id, position):
                continue
            if not lines:
                raise SilentLoss(
                    f"{self.where}: queue {queue_id} of {broker!r} is not there, and nobody is told: {told}"
                )
            if self.is_strict and broker == _BROKER:
                raise SilentLoss(f"{self.where}: queue {queue_id} is not there: expected an error, got {lines}")

    def _strangers(self, position: _Position) -> list[tuple[str, int]]:
        return [
            (broker, queue_id)
            for broker, queue_id in position.offsets
            if broker != _BROKER or queue_id not in self.topic.bounds
        ]

    def _has_left(self, queue_id: int, position: _Position) -> bool:
        """Whether a queue that was read to its end, or has nothing, is one that the topic has no more."""
        return position.offsets[_BROKER, queue_id] in {0, *self._former_ends(queue_id)}

    def _former_ends(self, queue_id: int) -> list[int]:
        offsets = json.loads(self.topic.positions[-1])[self.topic.name][_BROKER]
        return [offsets[str(queue_id)]] if str(queue_id) in offsets and self.topic.is_same else []

    def _is_plausible(self, queue_id: int, position: _Position) -> bool:
        """Whether no fact contradicts an offset: it is in the queue, and its time is that of the message before it."""
        first, last = self.topic.bounds[queue_id]
        at = position.offsets.get((_BROKER, queue_id))
        if at is None or not first <= at <= last:
            return False
        stored = position.stored.get((_BROKER, queue_id))
        return stored is None or at == first or self.topic.rows[queue_id, at - 1][1] == stored


@dataclass(frozen=True)
class _Position:
    """Offsets and times by broker and queue."""

    offsets: dict[tuple[str, int], int]
    stored: dict[tuple[str, int], int]


def _parsed(text: str, topic: str) -> _Position | None:
    """A careful reader's view of a text; None if it is no checkpoint of the topic."""
    try:
        value = json.loads(text)
        (name,) = value
        position = _Position({}, {})
        for broker, queues in value[name].items():
            for queue_id, offset in queues.items():
                if type(offset) is not int or not 0 <= offset < 1 << 63 or not -(1 << 31) <= int(queue_id) < 1 << 31:
                    return None
                if position.offsets.setdefault((broker, int(queue_id)), offset) != offset:
                    return None
            head, mark, times = broker.rpartition(" stored ")
            if mark and not queues:
                position.stored.update(_times_of(head, times))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None
    return position if name == topic and position.offsets else None


def _times_of(broker: str, text: str) -> dict[tuple[str, int], int]:
    """All times of a member, or none."""
    found = re.fullmatch(r"[+-]?\d+:[+-]?\d+( [+-]?\d+:[+-]?\d+)*", text)
    if found is None:
        return {}
    pairs: list[Any] = [word.split(":") for word in text.split(" ")]
    times = {(broker, int(queue_id)): int(stored) for queue_id, stored in pairs}
    return times if all(-(1 << 63) <= stored < 1 << 63 for stored in times.values()) else {}
