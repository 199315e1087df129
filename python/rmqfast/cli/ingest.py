"""`rmqfast ingest`: messages of a store or a cluster as a table, written by this process or by Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
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
from rmqfast.cli.cluster_access import Access, reaches_cluster
from rmqfast.cli.damage import end_with_bad_bodies_of_ingest, end_with_damage, end_with_losses
from rmqfast.cli.endings import end_on_signals
from rmqfast.cli.output import Form, Row, bar, write, write_facts
from rmqfast.cli.shared_options import (
    PATH,
    EndTime,
    OnDamage,
    OnDamageOption,
    Output,
    StartTime,
    Tags,
    TopicsOption,
    pairs,
)
from rmqfast.errors import ArgumentError
from rmqfast.paths import exists
from rmqfast.store import DecodeArguments
from rmqfast.store.message_stores import open_one_or_several
from rmqfast.store.report import Ingested
from rmqfast.threads import sleep

if TYPE_CHECKING:
    from rmqfast.spark.reader import Engine as SparkEngine

SparkMode = Literal["error", "append", "overwrite"]
ENGINES = (
    "local writes in this process; columnar, arrow and pandas say how rows come into Spark, which writes Parquet; "
    "auto is local, or Spark where --master is given or Parquet goes to a URL of Hadoop's, as s3a:// and hdfs://."
)
MODES = (
    "resume writes what the table lacks; error: the table must not exist; append: add to a table of others; overwrite: "
    "replace Parquet files. Default: resume, of Spark error."
)
#: Schemes of URLs to which this process writes Parquet. All others are Hadoop's.
OWN_SCHEMES = frozenset({"file", "s3", "gs", "gcs"})
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Format(StrEnum):
    """Kinds of tables."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


class Mode(StrEnum):
    """Action if the output already exists."""

    RESUME = "resume"
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


class Compression(StrEnum):
    """Compression of Parquet files."""

    SNAPPY = "snappy"
    ZSTD = "zstd"
    LZ4 = "lz4"
    GZIP = "gzip"
    NONE = "none"


def interval(text: str) -> float:
    """Parses an interval, such as `60s`, `5m` or `1h`, to seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if found is None:
        raise typer.BadParameter(f"expected an interval as 60s, 5m or 1h, got {text!r}")
    return float(found[1]) * UNITS[found[2]]


@reaches_cluster
def ingest(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="A store, a directory of stores, or a pattern. Default: the cluster.",
            parser=PATH,
        ),
    ] = None,
    *,
    out: Annotated[str, typer.Option(help="A path or URL, as s3://BUCKET/PATH; NAMESPACE.TABLE for Iceberg.")],
    format_: Annotated[Format, typer.Option("--format", help="Kind of table.")] = Format.PARQUET,
    topic: TopicsOption = None,
    pattern: Annotated[str | None, typer.Option(help="Only topics whose whole name matches, also later ones.")] = None,
    tags: Tags = "*",
    start_time: StartTime = None,
    end_time: EndTime = None,
    partition: Annotated[
        str, typer.Option(help="Partitions of a new table: day, topic, broker_name, queue_id, tags; or ''.")
    ] = "day,topic",
    compression: Annotated[Compression, typer.Option(help="Compression of the files.")] = Compression.SNAPPY,
    catalog: Annotated[str, typer.Option(help="Catalog of Iceberg, in pyiceberg's configuration.")] = "default",
    option: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE, of the storage or Iceberg's catalog; repeatable.")
    ] = None,
    every: Annotated[
        float | None, typer.Option(metavar="TIME", help="Go on, and look again after 60s, 5m, 1h.", parser=interval)
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark's master. Default: local[*].")] = None,
    engine: Annotated[Engine, typer.Option(help=ENGINES)] = Engine.AUTO,
    mode: Annotated[Mode | None, typer.Option(help=MODES)] = None,
    on_damage: OnDamageOption = OnDamage.FAIL,
    errors: Annotated[
        bool, typer.Option("--errors", help="Damaged bytes and undecoded bodies go to OUT__errors.")
    ] = False,
    decode: DecodeOption = None,
    schema: SchemaOption = None,
    framing: FramingOption = BodyFraming.NONE,
    schema_id: SchemaIdOption = None,
    on_error: OnErrorOption = OnError.NULL,
    access: Access,
    output: Output = Form.TABLE,
) -> None:
    """Writes messages of a store or a cluster to a table: Parquet files, a Delta table or an Iceberg table.

    The table keeps its position, in the same commit as the rows: the next run writes what is new, each message exactly
    once, also after a kill. Spark writes Parquet if you name --master, an engine of Spark's, or a URL of Hadoop's.

    Exit code 1: bytes were damaged, messages lost, or bodies not decoded; standard error says where.
    """
    selected = choose_engine(engine, master, out, format_)
    arguments: dict[str, Any] = {
        "tags": tags,
        "start_time": start_time,
        "end_time": end_time,
        "on_damage": on_damage.value,
        **decode_arguments(decode, schema, framing, schema_id, on_error),
    }
    if selected is not Engine.LOCAL:
        spark_mode = _spark_mode(directory, mode, every)
        refused = {
            "--errors": errors,
            "--pattern": pattern is not None,
            "--partition": partition != "day,topic",
            "--compression": compression is not Compression.SNAPPY,
            "--option": bool(option),
        }
        for name in (name for name, is_given in refused.items() if is_given):
            raise ArgumentError(f"{name}: expected --engine local, got Spark")
        report = run_with_spark(
            cast("Path", directory),
            topic,
            out,
            master=master or "local[*]",
            engine=selected,
            mode=spark_mode,
            **arguments,
        )
        _end(report, out, output)
        return
    arguments |= {
        "format": format_.value,
        "partition": [name for name in partition.split(",") if name],
        "compression": compression.value,
        "catalog": catalog,
        "options": pairs("--option", option or ()),
        "mode": "resume" if mode is None else mode.value,
        "errors": errors,
        "pattern": pattern,
    }
    if every is None:
        _end(run_locally(directory, topic, out, access, **arguments), out, output)
        return
    if output is Form.JSON:
        raise ArgumentError("output: expected table, jsonl or csv with --every, got json, an array that never ends")
    with end_on_signals():
        write(output, list(FACTS), rounds(directory, topic, out, access, every, **arguments))


def rounds(
    directory: Path | None,
    topics: Sequence[str] | None,
    out: str,
    access: Access,
    every: float,
    **arguments: Any,
) -> Iterator[Sequence[Row]]:
    """Writes what is new at regular intervals. Yields the counts of each round that has written something."""
    while True:
        report = run_locally(directory, topics, out, access, **arguments)
        # the first round may create the table, which the others continue
        arguments["mode"] = "resume"
        if report.rows or report.errors:
            yield [list(facts(report).values())]
        end_with_bad_bodies_of_ingest(report)
        end_with_losses(report.losses)
        end_with_damage(report.damage)
        sleep(every)


def choose_engine(engine: Engine, master: str | None, out: str, format_: Format) -> Engine:
    """Returns `local` for `auto` if no option needs Spark. Raises `ArgumentError` for `local` if an option does."""
    scheme = out.partition("://")[0].lower() if "://" in out else "file"
    is_of_hadoop = format_ is Format.PARQUET and scheme not in OWN_SCHEMES
    needs_spark = "--master" if master is not None else f"Parquet at {scheme}://" if is_of_hadoop else None
    if engine is Engine.LOCAL and needs_spark:
        raise ArgumentError(f"--engine: expected auto, columnar, arrow or pandas with {needs_spark}, got local")
    selected = Engine.LOCAL if engine is Engine.AUTO and not needs_spark else engine
    if selected is not Engine.LOCAL and format_ is not Format.PARQUET:
        raise ArgumentError(
            f"--format: expected parquet with Spark, got {format_.value}; without --master and --engine, this process "
            "writes it, and streams of Spark write it"
        )
    return selected


def _spark_mode(directory: Path | None, mode: Mode | None, every: float | None) -> SparkMode:
    if directory is None:
        raise ArgumentError("expected DIR with Spark, got none: this process, or a stream of Spark, reads a cluster")
    if every is not None or mode is Mode.RESUME:
        name = "--every" if every is not None else "--mode resume"
        raise ArgumentError(f"{name}: expected --engine local, got Spark, which writes all messages once")
    return cast("SparkMode", "error" if mode is None else mode.value)


def run_locally(
    directory: Path | None, topics: Sequence[str] | None, out: str, access: Access, **options: Any
) -> Ingested:
    from rmqfast.cluster import open_cluster
    from rmqfast.tables import ingest as ingest_messages

    source = open_cluster(config=access.config()) if directory is None else directory
    with bar(f"writing {options['format']}") as progress:
        return ingest_messages(source, out, topics, progress=progress, **options)


def run_with_spark(
    directory: Path,
    topics: Sequence[str] | None,
    out: str,
    *,
    master: str,
    engine: Engine,
    mode: SparkMode,
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
    with open_one_or_several(directory) as store:
        for topic in topics or (None,):
            # Reads nothing: creating a scan already checks topic, tags and schema.
            store.scan(topic, **of_scan)


def check_free(out: str, mode: SparkMode) -> None:
    """Raises `ArgumentError` if the output exists and must not exist. Spark checks URLs itself."""
    if mode == "error" and exists(out):
        raise ArgumentError(f"--out: {out} exists; --mode append or --mode overwrite writes there nevertheless")


def _end(report: Ingested, out: str, output: Form) -> None:
    write_facts(output, {"out": out, **facts(report)})
    end_with_bad_bodies_of_ingest(report)
    end_with_losses(report.losses)
    end_with_damage(report.damage)


FACTS = ("rows", "bytes", "seconds", "rows_per_second", "mb_per_second", "errors")


def facts(report: Ingested) -> dict[str, object]:
    """Returns size and speed. One MB is 1,000,000 bytes of the commit log."""
    values = (
        report.rows,
        report.bytes,
        round(report.seconds, 3),
        round(report.rows / report.seconds),
        round(report.bytes / report.seconds / 1e6, 1),
        report.errors,
    )
    return dict(zip(FACTS, values, strict=True))
