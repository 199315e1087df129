"""`rmqfast demo`: reads two stores with Spark, one from a real broker and one that is generated."""

from __future__ import annotations

import random
import shutil
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import accumulate
from math import pi, sin
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rmqfast.cells import size_text
from rmqfast.cli.ingest import facts
from rmqfast.cli.output import Form, bar, say, write, write_facts
from rmqfast.cli.shared_options import PATH
from rmqfast.errors import ArgumentError, StoreIOError
from rmqfast.paths import exists
from rmqfast.store import AppendOptions, milliseconds, open_store

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


SparkSession = Any  # only rmqfast.spark imports pyspark
BROKERS_STORE = "offsets-4.9.4"
MARK = ".rmqfast-demo"  # marks a directory that the demo created and may remove
RECORD_BYTES = BODY_BYTES + 200
# Factor for the store, its Parquet files, and Spark's spilled data.
SPACE = 2.5
# Characters of the longest bar.
BAR_WIDTH = 40
FILE_BYTES = 64 << 20  # RocketMQ's default of 1 GiB would leave files mostly empty
INDEX_ENTRIES = 1_000_000

COUNTS = """
    SELECT topic, tags, count(*) AS messages, date_format(min(born_timestamp), 'yyyy-MM-dd HH:mm:ss') AS first,
    date_format(max(born_timestamp), 'yyyy-MM-dd HH:mm:ss') AS last
    FROM {messages} GROUP BY topic, tags ORDER BY topic, messages DESC
"""
HOURS = """
    SELECT date_format(born_timestamp, 'yyyy-MM-dd HH:00') AS hour, count(*) AS messages
    FROM {messages} GROUP BY 1 ORDER BY 1
"""


def demo(
    *,
    directory: Annotated[Path, typer.Option("--dir", help="Working directory; must not exist.", parser=PATH)] = Path(
        ".demo"
    ),
    size_mib: Annotated[int, typer.Option(min=1, help="Size of the generated store in MiB.")] = 1024,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the directory.")] = False,
) -> None:
    """Shows what rmqfast does: writes a store, reads it and a real broker's with Spark, writes Parquet."""
    from rmqfast.spark.session import check_pyspark

    check_pyspark()
    check_space(directory, size_mib)
    with workplace(directory, keep=keep):
        unpack_brokers_store(directory / "broker")
        make_store(directory / "shop", size_mib)
        show(directory)
        what_next(directory, keep=keep)


def check_space(directory: Path, size_mib: int) -> None:
    """Raises `StoreIOError` if the disk has too little space."""
    needed = int(size_mib * SPACE + 256) << 20
    free = shutil.disk_usage(directory.absolute().parent).free
    if free < needed:
        raise StoreIOError(
            f"{directory}: expected {size_text(needed)} of free disk, got {size_text(free)}; try --size-mib"
        )


@contextmanager
def workplace(directory: Path, *, keep: bool) -> Iterator[None]:
    """Creates a new directory for the block. It replaces the directory of an earlier demo, but no other directory."""
    # Only a directory with this mark may be deleted.
    if exists(directory / MARK):
        shutil.rmtree(directory)
    elif exists(directory):
        raise ArgumentError(f"{directory}: expected a directory that does not exist, as the demo removes it")
    directory.mkdir(parents=True)
    (directory / MARK).touch()
    try:
        yield
    finally:
        if not keep:
            shutil.rmtree(directory)


def unpack_brokers_store(directory: Path) -> None:
    """Unpacks a small store that RocketMQ 4.9.4 has written."""
    import tarfile
    from importlib import resources

    packed = resources.files("rmqfast.cli") / "data" / f"{BROKERS_STORE}.tar.gz"
    with packed.open("rb") as stream, tarfile.open(fileobj=stream) as archive:
        archive.extractall(directory, filter="data")


def make_store(path: Path, size_mib: int) -> None:
    rows = (size_mib << 20) // RECORD_BYTES
    count, started = 0, time.monotonic()
    stored_at = 0
    options = AppendOptions(file_size=FILE_BYTES, index_slots=INDEX_ENTRIES // 4, index_entries=INDEX_ENTRIES)
    # The store's clock follows the born times, so that store times spread over the day, too.
    store = open_store(path, mode="a", options=options, clock=lambda: stored_at)
    with store, bar("writing a store") as progress:
        for table in tables(rows, ends_at=datetime.now(UTC)):
            stored_at = table["born_timestamp"][-1].value
            store.append_many(table)
            count += table.num_rows
            if progress:
                progress(count, rows)
    seconds = time.monotonic() - started
    print(f"wrote {path}: {rows:,} messages, {size_mib:,} MiB, in {seconds:.1f} s\n")


def show(directory: Path) -> None:
    from rmqfast.spark.session import session

    say("starting Spark")
    with session("rmqfast demo") as spark:
        print("what RocketMQ 4.9.4 wrote:\n")
        show_counts(spark, directory / "broker" / "store")
        print("\nwhat was made up here:\n")
        show_counts(spark, directory / "shop")
        print("\nits day, by the hour:\n")
        show_hours(spark, directory / "shop")
        show_throughput(spark, directory)


def show_counts(spark: SparkSession, path: Path) -> None:
    counts = rows(spark, COUNTS, path, ["topic", "tags", "born_timestamp"])
    write(Form.TABLE, ["topic", "tags", "messages", "first", "last"], [counts])


def show_hours(spark: SparkSession, path: Path) -> None:
    """Prints the messages per hour as bars."""
    hours = rows(spark, HOURS, path, ["born_timestamp"])
    most = max(messages for _, messages in hours)
    for hour, messages in hours:
        print(f"{hour}  {messages:>9,}  {'█' * round(BAR_WIDTH * messages / most)}")


def show_throughput(spark: SparkSession, directory: Path) -> None:
    """Prints how fast Spark reads all columns and writes them as Parquet."""
    from rmqfast.spark.ingest import ingest, read_all

    with bar("reading") as progress:
        reading = read_all(spark, directory / "shop", None, progress=progress)
    print("\nSpark read all columns:\n")
    write_facts(Form.TABLE, facts(reading))
    with bar("writing Parquet") as progress:
        writing = ingest(spark, directory / "shop", None, directory / "parquet", progress=progress)
    print("\nSpark read them and wrote Parquet:\n")
    write_facts(Form.TABLE, facts(writing))


def rows(spark: SparkSession, query: str, path: Path, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    from rmqfast.spark import read_store

    return [tuple(row) for row in spark.sql(query, messages=read_store(spark, path, None, columns=columns)).collect()]


def what_next(directory: Path, *, keep: bool) -> None:
    print("\nwhat to try next:\n")
    if not keep:
        print("  rmqfast demo --keep                 leaves the stores and the Parquet files behind, then")
    print(f"  rmqfast store info {directory}/shop")
    print(f"  rmqfast store scan {directory}/shop --topic orders --tags 'cancelled || shipped' --limit 20")
    print(
        f"  rmqfast store scan {directory}/shop --topic orders --sql \"amount > 9000 AND region IN ('eu')\" --limit 20"
    )
    print(f"  rmqfast ingest {directory}/shop --topic orders --out {directory}/orders")
