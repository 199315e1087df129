"""`rmqfast demo`: reads two stores with Spark, one from a real broker and one that is generated."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from rmqfast.cells import size_text
from rmqfast.cli.demo_messages import BODY_BYTES, tables
from rmqfast.cli.ingest import facts
from rmqfast.cli.output import Form, say, write, write_facts
from rmqfast.cli.progress import bar
from rmqfast.cli.shared_options import PATH
from rmqfast.errors import ArgumentError, StoreIOError
from rmqfast.paths import exists
from rmqfast.store import AppendOptions, open_store

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
    from rmqfast.spark.local import check_pyspark

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
    from rmqfast.spark.local import session

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
