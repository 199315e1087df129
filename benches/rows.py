"""The rmqfast rows: scan, tag scan and append in one warm Python process; run as a program, it is the peer's child."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

import arrow_rows
from data import CHUNK, TOPIC, Dataset
from peer import Answer, Missing, serve, timed

COLUMN_SETS = {
    "all": list(arrow_rows.COLUMNS),
    "no_properties": [name for name in arrow_rows.COLUMNS if name != "properties"],
    "narrow": [name for name in arrow_rows.COLUMNS if name not in ("body", "properties")],
    "eight": arrow_rows.EIGHT,
}
IN_HAND = 5 * CHUNK  # messages that an append sends again and again


def rmqfast() -> ModuleType:
    """The package under test; Missing where it is not installed or has no store yet."""
    try:
        package = importlib.import_module("rmqfast")
    except ImportError as error:
        raise Missing(f"rmqfast cannot be imported: {error}") from None
    if not hasattr(package, "open_store"):
        raise Missing("rmqfast has no open_store")
    return package


def drain(stream: Any) -> int:
    """Takes every batch of an Arrow stream and drops it; returns the rows."""
    return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream))


def scan(path: str, columns: str = "no_properties", verify_crc: str = "", io: str = "pread") -> Answer:
    """A whole topic as Arrow batches: one of COLUMN_SETS, with or without the check of the bodies' CRC."""
    wanted = COLUMN_SETS[columns]
    with rmqfast().open_store(path, io=io) as store:
        return timed_scan(io, "rows", lambda: store.scan(TOPIC, columns=wanted, verify_crc=bool(verify_crc)))


def tagged(path: str, tag: str, rows: str, io: str = "pread") -> Answer:
    """The messages of one tag; `rows` is the number of entries that must be examined for that."""
    wanted = COLUMN_SETS["no_properties"]
    with rmqfast().open_store(path, io=io) as store:
        return {**timed_scan(io, "returned", lambda: store.scan(TOPIC, tags=tag, columns=wanted)), "rows": int(rows)}


def timed_scan(io: str, name: str, scan: Callable[[], Any]) -> Answer:
    """The time of a scan.

    Mapped, the store is read once before: the first reader of a map pays for its pages, as RocketMQ did when it opened.
    """
    if io != "pread":
        drain(scan())
    return timed(lambda: {name: drain(scan())})


def recover(path: str) -> Answer:
    """Opening a store that was left behind, until the first message could be appended."""

    answer = timed(lambda: {"rows": 0, "store": rmqfast().open_store(path, mode="a")})
    with answer.pop("store") as store:
        return {**answer, "log_end": store.recovery.log_end}


def append_singly(path: str, body: str, rows: str) -> Answer:
    """append of one message a call."""
    messages = [rmqfast().Message(TOPIC, os.urandom(int(body)), tags="tag07", keys=f"k{n}") for n in range(1000)]
    with rmqfast().open_store(path, mode="a", flush="async") as store:

        def send() -> Answer:
            for n in range(int(rows)):
                store.append(messages[n % 1000])
            return {"rows": int(rows)}

        answer = timed(send)
        queued = sum(end - begin for begin, end in store.topics()[TOPIC].values())
    return {**answer, "queued": queued}


def append(path: str, body: str, rows: str) -> Answer:
    """append_many into a new store, asynchronous flush, indexed keys; the messages are Arrow batches made before."""
    dataset = Dataset("append", int(body), int(rows))
    with rmqfast().open_store(path, mode="a", flush="async") as store:
        batches = to_send(dataset)

        def send() -> Answer:
            for batch in batches:
                store.append_many(batch)
            return {"rows": dataset.rows}

        answer = timed(send)
        queued = sum(end - begin for begin, end in store.topics()[TOPIC].values())
    return {**answer, "queued": queued}


def to_send(dataset: Dataset) -> list[pa.RecordBatch]:
    """Batches of that many messages in all; past IN_HAND the same ones come again."""
    spans = list(Dataset("append", dataset.body, min(dataset.rows, IN_HAND)).spans())
    made = [arrow_rows.to_append(dataset, start, stop) for start, stop in spans]
    batches: list[pa.RecordBatch] = []
    left = dataset.rows
    while left > 0:
        batch = made[len(batches) % len(made)].slice(0, left)
        batches.append(batch)
        left -= batch.num_rows
    return batches


def serve_rows() -> None:
    """Answers requests on standard input."""
    serve({"scan": scan, "tagged": tagged, "append": append, "append_singly": append_singly, "recover": recover})


def command() -> list[str]:
    """The command that starts this program."""
    return [sys.executable, str(Path(__file__).resolve())]


if __name__ == "__main__":
    serve_rows()
