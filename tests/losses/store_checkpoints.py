"""Checkpoints of streams of store directories harmed: a position in a log.

Where a message begins at the position, the stream reads all messages from there on, once. Elsewhere an error or a
warning says so.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from pyspark.sql.datasource import InputPartition

import rmqfast
from rmqfast import AppendOptions, Message
from rmqfast._native import SparkStream
from rmqfast.errors import RmqError
from rmqfast.spark.store_stream import store_stream_reader

from .attempt import Attempt, SilentLoss
from .told import warnings_told

__all__ = ["StoreCheckpoints"]

_FILE = 1 << 16
_OPTIONS = AppendOptions(file_size=_FILE, queue_file_size=2000, index_slots=1000, index_entries=4000)
_MOST_BATCHES = 8
_NUMBERS = [
    "-1",
    "0",
    "1",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1.5",
    "null",
    '"0"',
    "[]",
]
_TEXTS = [
    "",
    "{}",
    "null",
    "[]",
    "latest",
    '{"log": 5, "more": 6}',
    '{"Log": 5}',
    '{"orders": {"b": {"0": 7}}}',
    '{"log": 7',
]


@dataclass
class _Log:
    """A store, and the positions at which streams were before it changed.

    Attributes:
        path: The store.
        life: What became of it.
        positions: Texts of checkpoints, one behind the other.
        rows: What it has now, by position.
        first: Where its log begins.
        end: Where its log ends.
        blanks: Where the last message of each file ends.
    """

    path: Path
    life: str
    positions: list[str] = field(default_factory=list)
    rows: dict[int, bytes] = field(default_factory=dict)
    first: int = 0
    end: int = 0
    blanks: set[int] = field(default_factory=set)


class StoreCheckpoints:
    """Stores that lived on while their streams stood still."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="losses-store-checkpoints-")
        root = Path(self._directory.name)
        _fill(root / "older", 150, seed=1)
        shutil.copytree(root / "older", root / "base")
        _fill(root / "base", 60, seed=2)
        positions = _positions(root / "base")
        _fill(root / "other", 300, seed=3)
        shutil.copytree(root / "base", root / "grown")
        _fill(root / "grown", 80, seed=4)
        shutil.copytree(root / "base", root / "expired")
        (root / "expired" / "commitlog" / f"{0:020}").unlink()
        lives = {
            "base": "nothing came",
            "grown": "it has grown",
            "older": "an older copy",
            "other": "another store",
            "expired": "its first file expired",
        }
        self._logs = [_now(_Log(root / name, life, positions)) for name, life in lives.items()]

    def close(self) -> None:
        """Removes the stores."""
        self._directory.cleanup()

    def attempt(self, chance: random.Random) -> Attempt:
        """Harms a checkpoint, and has a stream go on from there."""
        log = chance.choice(self._logs)
        number = chance.randrange(len(log.positions))
        texts = log.positions[number : number + chance.choice((1, 1, 2))]
        words = "as it was"
        if chance.randrange(8):
            at = chance.randrange(len(texts))
            texts[at], words = _harmed(texts[at], log, chance), "harmed"
        is_strict = chance.randrange(2) == 0
        where = f"{'strict' if is_strict else 'lax'}: store {log.path.name} ({log.life}), {words}: {' to '.join(texts)}"
        return _judged(where, log, texts, is_strict=is_strict)


def _fill(path: Path, count: int, *, seed: int) -> None:
    chance = random.Random(seed)
    with rmqfast.open_store(path, mode="a", options=_OPTIONS) as store:
        for number in range(count):
            store.append(Message("orders", f"{seed} {number} ".encode() + chance.randbytes(chance.randrange(900))))


def _now(log: _Log) -> _Log:
    with rmqfast.open_store(log.path) as store:
        info = store.info()
        log.first, log.end = info.min_offset, info.max_offset
        table = store.scan(columns=["physical_offset", "store_size", "body"]).to_arrow().to_pylist()
    log.rows = {row["physical_offset"]: row["body"] for row in table}
    log.blanks = set({at // _FILE: at + row["store_size"] for row in table for at in [row["physical_offset"]]}.values())
    return log


def _positions(path: Path) -> list[str]:
    stream = SparkStream.of_store(_options(path) | {"maxBytesPerTrigger": "20000"})
    positions = [stream.initial()]
    while (end := stream.latest(positions[-1], is_limited=True)) != positions[-1]:
        positions.append(end)
    return positions


def _options(path: Path) -> dict[str, str]:
    return {"storePath": str(path), "startingOffsets": "earliest"}


def _harmed(text: str, log: _Log, chance: random.Random) -> str:
    kind = chance.randrange(6)
    if kind == 0:
        return chance.choice(_TEXTS)
    if kind == 1:
        return f'{{"log": {chance.choice(_NUMBERS)}}}'
    if kind == 2:
        return f'{{"log": {chance.choice(list(log.rows))}}}'
    if kind == 3:
        return f'{{"log": {log.end + chance.choice((-1, 0, 1, _FILE))}}}'
    near = json.loads(text)["log"] + chance.randrange(-3000, 3000)
    return f'{{"log": {max(near, 0)}}}'


def _judged(where: str, log: _Log, texts: Sequence[str], *, is_strict: bool) -> Attempt:
    with warnings_told() as told:
        try:
            rows = list(_read(where, log, texts, is_strict=is_strict))
        except RmqError as error:
            if str(log.path) not in str(error) and "checkpoint" not in str(error):
                raise SilentLoss(f"{where}: expected an error that tells of the checkpoint, got {error!r}") from error
            if all(_is_plausible(log, text) for text in texts) and "ends at" not in str(error):
                raise SilentLoss(f"{where}: nothing is wrong, and it is refused: {error}") from error
            return Attempt(where, rows=0, missing=0, refused=True)
        except BaseException as error:
            raise SilentLoss(f"{where}: expected an error of rmqfast, got {error!r}") from error
    numbers = [_position(text) for text in texts]
    if None in numbers:
        raise SilentLoss(f"{where}: expected an error, got {len(rows)} rows")
    begin = min(number for number in numbers if number is not None)
    expected = [(position, body) for position, body in sorted(log.rows.items()) if position >= begin]
    # a batch does not end before it begins
    is_sound = all(_is_plausible(log, text) for text in texts) and numbers in ([begin], [begin, numbers[-1]])
    if rows != expected and (is_sound or not told):
        raise SilentLoss(
            f"{where}: expected {len(expected)} rows from {begin} on, got {len(rows)}, of {rows[:1]}: {told}"
        )
    if not is_sound and not told:
        raise SilentLoss(f"{where}: the log is {log.first} to {log.end}: nobody is told")
    if is_strict and not is_sound:
        raise SilentLoss(f"{where}: expected an error, got {told}")
    if any(log.rows.get(position) != body for position, body in rows):
        raise SilentLoss(f"{where}: a row was never written")
    return Attempt(where, rows=len(rows), missing=max(len(expected) - len(rows), 0), refused=False)


def _read(where: str, log: _Log, texts: Sequence[str], *, is_strict: bool) -> Iterator[tuple[int, bytes]]:
    options = _options(log.path) | {"failOnDataLoss": "true" if is_strict else "false"}
    reader = store_stream_reader(options, ["physical_offset", "body"])
    stream = SparkStream.of_store(options)

    def batch(start: str, end: str) -> Iterator[tuple[int, bytes]]:
        for piece in stream.pieces(start, end):
            for rows in reader.read(InputPartition(piece)):
                yield from ((row["physical_offset"], row["body"]) for row in rows.to_pylist())

    for start, end in pairwise(texts):
        yield from batch(start, end)
    text = texts[-1]
    for _ in range(_MOST_BATCHES):
        end = stream.latest(text, is_limited=True)
        yield from batch(text, end)
        if end == text:
            return
        text = end
    raise SilentLoss(f"{where}: no end after {_MOST_BATCHES} batches, at {text}")


def _position(text: str) -> int | None:
    """A careful reader's view of a text; None if it is no position."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or list(value) != ["log"] or type(value["log"]) is not int:
        return None
    return value["log"] if 0 <= value["log"] < 1 << 64 else None


def _is_plausible(log: _Log, text: str) -> bool:
    """Whether a message begins at a position, or the blank that ends a file, or the log ends there."""
    position = _position(text)
    if position is None or not log.first <= position <= log.end:
        return False
    return position in log.rows or position in log.blanks or position == log.end
