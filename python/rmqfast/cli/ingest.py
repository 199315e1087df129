"""`rmqfast ingest`: copies a store to Parquet files, in this process or by Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from rmqfast.cli.bodies import (
    BodyFraming,
    DecodeOption,
    FramingOption,
    OnError,
    OnErrorOption,
    SchemaIdOption,
    SchemaOption,
    decode_arguments,
)
from rmqfast.cli.damage import end_with_bad_bodies_of_ingest, end_with_damage
from rmqfast.cli.output import Form, bar, write_facts
from rmqfast.cli.shared_options import (
    Directory,
    EndTime,
    OnDamage,
    OnDamageOption,
    Output,
    StartTime,
    Tags,
    TopicsOption,
)
from rmqfast.errors import ArgumentError
from rmqfast.paths import exists
from rmqfast.store import DecodeArguments, open_store
from rmqfast.store.parquet import write_parquet
from rmqfast.store.report import Ingested

if TYPE_CHECKING:
    from rmqfast.spark.reader import Engine as SparkEngine

ModeName = Literal["error", "append", "overwrite"]
ENGINES = (
    "local writes in this process; columnar, arrow and pandas say how rows come into Spark; "
    "auto is local, or Spark where --master is given or --out is a URL."
)


class Mode(StrEnum):
    """Action if the output already exists."""

    ERROR = "error"
    APPEND = "append"
    OVERWRITE = "overwrite"


class Engine(StrEnum):
    """Program that writes the files: this process, or Spark with one of its engines."""

    AUTO = "auto"
    LOCAL = "local"
    COLUMNAR = "columnar"
    ARROW = "arrow"
    PANDAS = "pandas"


def ingest(
    directory: Directory,
    *,
    out: Annotated[str, typer.Option(help="Output: a path, or a URL for Spark.")],
    topic: TopicsOption = None,
    tags: Tags = "*",
    start_time: StartTime = None,
    end_time: EndTime = None,
    master: Annotated[str | None, typer.Option(help="Spark's master. Default: local[*].")] = None,
    engine: Annotated[Engine, typer.Option(help=ENGINES)] = Engine.AUTO,
    mode: Annotated[Mode, typer.Option(help="Action if the output exists.")] = Mode.ERROR,
    on_damage: OnDamageOption = OnDamage.FAIL,
    decode: DecodeOption = None,
    schema: SchemaOption = None,
    framing: FramingOption = BodyFraming.NONE,
    schema_id: SchemaIdOption = None,
    on_error: OnErrorOption = OnError.NULL,
    output: Output = Form.TABLE,
) -> None:
    """Writes messages to Parquet, by day (of store_timestamp, UTC) and topic.

    This process writes them. Spark does if you name --master, an engine of Spark's, or a URL as --out.

    Exit code 1: bytes were damaged, or bodies could not be decoded; standard error says where.
    """
    selected = choose_engine(engine, master, out)
    write = (
        run_locally
        if selected is Engine.LOCAL
        else partial(run_with_spark, master=master or "local[*]", engine=selected)
    )
    report = write(
        directory,
        topic,
        out,
        mode=mode.value,
        tags=tags,
        start_time=start_time,
        end_time=end_time,
        on_damage=on_damage.value,
        **decode_arguments(decode, schema, framing, schema_id, on_error),
    )
    write_facts(output, {"out": out, **facts(report)})
    end_with_bad_bodies_of_ingest(report)
    end_with_damage(report.damage)


def choose_engine(engine: Engine, master: str | None, out: str) -> Engine:
    """Returns `local` for `auto` if no option needs Spark. Raises `ArgumentError` for `local` if an option does."""
    needs_spark = "--master" if master is not None else "a URL as --out" if "://" in out else None
    if engine is Engine.LOCAL and needs_spark:
        raise ArgumentError(f"--engine: expected auto, columnar, arrow or pandas with {needs_spark}, got local")
    return Engine.LOCAL if engine is Engine.AUTO and not needs_spark else engine


def run_locally(directory: Path, topics: Sequence[str] | None, out: str, *, mode: ModeName, **options: Any) -> Ingested:
    check_free(out, mode)
    with open_store(directory) as store, bar("writing Parquet") as progress:
        return write_parquet(store, out, topics, mode=mode, progress=progress, **options)


def run_with_spark(
    directory: Path,
    topics: Sequence[str] | None,
    out: str,
    *,
    master: str,
    engine: Engine,
    mode: ModeName,
    **options: Any,
) -> Ingested:
    from rmqfast.spark.session import check_pyspark, session

    check_pyspark()
    check_store(directory, topics, options)
    check_free(out, mode)
    from rmqfast.spark.ingest import ingest as ingest_store

    # The bar first, since a JVM takes seconds to start.
    with bar("writing Parquet with Spark") as progress, session("rmqfast ingest", master=master) as spark:
        return ingest_store(
            spark,
            directory,
            topics,
            out,
            mode=mode,
            progress=progress,
            engine=cast("SparkEngine", engine.value),
            **options,
        )


def check_store(directory: Path, topics: Sequence[str] | None, options: Mapping[str, Any]) -> None:
    """Raises errors about the store, topic, tags or the schema of bodies before a JVM is started."""
    of_scan = {name: options[name] for name in ("tags", *DecodeArguments.__annotations__)}
    with open_store(directory) as store:
        for topic in topics or (None,):
            # Reads nothing: creating a scan already checks topic, tags and schema.
            store.scan(topic, **of_scan)


def check_free(out: str, mode: ModeName) -> None:
    """Raises `ArgumentError` if the output exists and must not exist. Spark checks URLs itself."""
    if mode == "error" and exists(out):
        raise ArgumentError(f"--out: {out} exists; --mode append or --mode overwrite writes there nevertheless")


def facts(report: Ingested) -> dict[str, object]:
    """Returns size and speed. One MB is 1,000,000 bytes of the commit log."""
    return {
        "rows": report.rows,
        "bytes": report.bytes,
        "seconds": round(report.seconds, 3),
        "rows_per_second": round(report.rows / report.seconds),
        "mb_per_second": round(report.bytes / report.seconds / 1e6, 1),
    }
