"""Messages of the demo: a day of a web shop, as Arrow tables for `append_many`."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import accumulate
from math import pi, sin
from typing import TYPE_CHECKING

from rmqfast.store import milliseconds

if TYPE_CHECKING:
    import pyarrow as pa

# Topic, share of the messages, tags with their shares.
TOPICS = (
    ("clicks", 60, {"view": 70, "search": 20, "cart": 10}),
    ("orders", 25, {"paid": 70, "shipped": 25, "cancelled": 5}),
    ("payments", 15, {"card": 80, "invoice": 15, "refund": 5}),
)
REGIONS = ("eu", "us", "ap")
QUEUES = 4
BODY_BYTES = 1000
ROWS = 20_000
MINUTES = 24 * 60
SEED = 20_211_221  # the same demo data each time


def tables(rows: int, *, ends_at: datetime) -> Iterator[pa.Table]:
    """Yields tables of messages, oldest first. The last message is born at `ends_at`, the first one day earlier."""
    chance = random.Random(SEED)  # noqa: S311  (made-up data)
    minutes = _minutes()
    first = milliseconds(ends_at.astimezone(UTC)) - MINUTES * 60_000
    padding = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz ", k=64 * BODY_BYTES))
    for start in range(0, rows, ROWS):
        numbers = range(start, min(start + ROWS, rows))
        born = [first + round(_minute(minutes, n / rows) * 60_000) for n in numbers]
        yield _table(chance, numbers, born, padding)


def _table(chance: random.Random, numbers: range, born: list[int], padding: str) -> pa.Table:
    import pyarrow as pa  # imported here, since other commands start faster without it

    picked = chance.choices(TOPICS, weights=[share for _, share, _ in TOPICS], k=len(numbers))
    tags = [chance.choices(list(shares), weights=list(shares.values()))[0] for _, _, shares in picked]
    topics = [topic for topic, _, _ in picked]
    sales = [(chance.choice(REGIONS), chance.randrange(10_000)) for _ in numbers]
    properties = pa.map_(pa.string(), pa.string())
    columns = {
        "topic": pa.array(topics, pa.string()),
        "queue_id": pa.array([n % QUEUES for n in numbers], pa.int32()),
        "tags": pa.array(tags, pa.string()),
        "keys": pa.array([f"{topic}-{n}" for topic, n in zip(topics, numbers, strict=True)], pa.string()),
        "body": pa.array(
            [_body(n, *sale, chance, padding) for n, sale in zip(numbers, sales, strict=True)], pa.binary()
        ),
        "properties": pa.array([[("region", region), ("amount", str(amount))] for region, amount in sales], properties),
        "born_timestamp": pa.array(born, pa.timestamp("ms", tz="UTC")),
    }
    return pa.table(columns)


def _body(number: int, region: str, amount: int, chance: random.Random, padding: str) -> bytes:
    start = chance.randrange(len(padding) - BODY_BYTES)
    head = f'{{"number": {number}, "region": "{region}", "amount": {amount}, "note": "'
    return f'{head}{padding[start : start + BODY_BYTES - len(head) - 2]}"}}'.encode()


def _minutes() -> list[float]:
    """Returns which part of the day's traffic has come by the end of each minute. Traffic rises and falls once."""
    traffic = list(accumulate(1.2 - sin((minute / MINUTES) * 2 * pi + pi / 6) for minute in range(MINUTES)))
    return [passed / traffic[-1] for passed in traffic]


def _minute(minutes: list[float], passed: float) -> float:
    """Returns the minute of the day by which a given part of the traffic has come."""
    minute = bisect_left(minutes, passed)
    before = minutes[minute - 1] if minute else 0.0
    return minute + (passed - before) / (minutes[minute] - before)
