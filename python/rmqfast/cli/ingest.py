"""`rmqfast ingest`: a store as Parquet files, by Spark."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmqfast.cli.damage import end_with_damage
from rmqfast.cli.options import Directory, EndTime, Output, StartTime, Tags
from rmqfast.cli.output import Form, write_facts
from rmqfast.cli.progress import bar
from rmqfast.errors import ArgumentError
from rmqfast.store import open_store

if TYPE_CHECKING:
    from rmqfast.spark.ingest import Ingested

__all__ = ["facts", "ingest"]


class Mode(StrEnum):
    """What to do where the output exists."""

    ERROR = "error"
    APPEND = "append"
    OVERWRITE = "overwrite"


class Engine(StrEnum):
    """How rows come from the store into Spark."""

    AUTO = "auto"
    COLUMNAR = "columnar"
    ARROW = "arrow"
    PANDAS = "pandas"


class OnDamage(StrEnum):
    """What to do about bytes that cannot be read."""

    FAIL = "fail"
    WARN = "warn"


def ingest(
    directory: Directory,
    *,
    out: Annotated[str, typer.Option(help="Where to write: a path or URL that Spark writes to.")],
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; repeatable; all without it.")] = None,
    tags: Tags = "*",
    start_time: StartTime = None,
    end_time: EndTime = None,
    master: Annotated[str, typer.Option(help="Spark's master.")] = "local[*]",
    engine: Annotated[Engine, typer.Option(help="How rows come into Spark.")] = Engine.AUTO,
    mode: Annotated[Mode, typer.Option(help="What to do where the output exists.")] = Mode.ERROR,
    on_damage: Annotated[OnDamage, typer.Option(help="What to do about bytes that cannot be read.")] = OnDamage.FAIL,
    output: Output = Form.TABLE,
) -> None:
    """Writes messages to Parquet, by day (of store_timestamp, UTC) and topic, with Spark on this machine."""
    from rmqfast.spark.local import check_pyspark, session

    check_pyspark()
    check_store(directory, topic, tags)
    check_free(out, mode)
    from rmqfast.spark.ingest import ingest as ingest_store

    # the bar first: a JVM takes seconds to start
    with bar("writing Parquet with Spark") as progress, session("rmqfast ingest", master=master) as spark:
        done = ingest_store(
            spark,
            directory,
            topic,
            out,
            mode=mode.value,
            progress=progress,
            tags=tags,
            start_time=start_time,
            end_time=end_time,
            engine=engine.value,
            on_damage=on_damage.value,
        )
    write_facts(output, {"out": out, **facts(done)})
    end_with_damage(done.damage)


def check_store(directory: Path, topics: Sequence[str] | None, tags: str) -> None:
    """Raises what is wrong with the store, a topic or the tags before a JVM is started for them."""
    with open_store(directory) as store:
        for topic in topics or (None,):
            store.scan(topic, tags=tags, columns=["topic"])


def check_free(out: str, mode: Mode) -> None:
    """Raises ArgumentError where the output exists and shall not; what a URL says, Spark finds out."""
    if mode is Mode.ERROR and Path(out).exists():
        raise ArgumentError(f"--out: {out} exists; --mode append or --mode overwrite writes there nevertheless")


def facts(done: Ingested) -> dict[str, object]:
    """What was written, and how fast; a MB is 1,000,000 bytes of the commit log."""
    return {
        "rows": done.rows,
        "bytes": done.bytes,
        "seconds": round(done.seconds, 3),
        "rows_per_second": round(done.rows / done.seconds),
        "mb_per_second": round(done.bytes / done.seconds / 1e6, 1),
    }
