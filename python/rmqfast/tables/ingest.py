"""Writes messages of a store or a cluster to a table, each once, also over many runs and after kills.

Source: `StreamExecution` of Spark; the sinks of Delta Lake and Iceberg.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Literal, Unpack, cast

from rmqfast.arguments import Number, Time, integer, suggests_names
from rmqfast.cluster import MessageCluster
from rmqfast.errors import ArgumentError, DamageWarning, DecodeWarning
from rmqfast.extras import import_extra
from rmqfast.paths import local_path
from rmqfast.store import DecodeArguments, MessageStore, ScanRequest
from rmqfast.store.report import Ingested
from rmqfast.store.request import check_names
from rmqfast.system import monotonic
from rmqfast.tables.data_files import COMPRESSIONS
from rmqfast.tables.errors_table import SUFFIX, ErrorsTable, error_schema
from rmqfast.tables.ingestion import Ingestion, Progress
from rmqfast.tables.opening import Format, Mode, open_table, open_tables
from rmqfast.tables.partitioning import Partitioning
from rmqfast.tables.position import Selection
from rmqfast.tables.remote_directory import is_url
from rmqfast.tables.sources import MESSAGE_BYTES, Stores, open_source
from rmqfast.tables.step_writer import StepWriter
from rmqfast.tables.storage_errors import errors_name_storage

#: The part of a commit that is not committed if it has no row.
_IDLE_PART = 16
#: Rows and bytes of a batch, at most. Larger ones need more memory, smaller ones have few rows of each partition.
_BATCH_ROWS = 1 << 20
_BATCH_BYTES = 4 << 20
_MODES = ("resume", "error", "append", "overwrite")
_FORMATS = ("parquet", "delta", "iceberg")


@suggests_names
def ingest(
    source: Stores | MessageCluster,
    out: str | os.PathLike[str],
    topics: Sequence[str] | None = None,
    *,
    pattern: str | None = None,
    format: Format = "parquet",  # noqa: A002 - what Spark and pandas call it
    tags: str | Sequence[str] = "*",
    start_time: Time | None = None,
    end_time: Time | None = None,
    partition: Sequence[str] = ("day", "topic"),
    compression: str = "snappy",
    mode: Mode = "resume",
    on_damage: Literal["fail", "warn"] = "fail",
    errors: bool = False,
    catalog: str = "default",
    options: Mapping[str, str] | None = None,
    commit_bytes: Number = 4 << 30,
    progress: Progress | None = None,
    **body: Unpack[DecodeArguments],
) -> Ingested:
    """Writes the messages that a table lacks, each exactly once, up to the present end of the source.

    The table keeps its position, in the same commit as the rows. So the next call continues there, also after a kill,
    and writes nothing if there is nothing new.

    Args:
        source: A store's directory; the stores of several brokers, as a directory that has them, a pattern, or paths by
            broker (see `rmqfast.open_stores`); an open store or open stores; or a cluster (`rmqfast.open_cluster`).
        out: A path or URL, as `s3://bucket/path`; `namespace.table` for Iceberg. The table is created if it does not
            exist. Parquet at a URL has no lock: let one ingest at a time write there.
        topics: Names of topics. Default: all, of a cluster all topics of users.
        pattern: A regular expression that the whole name of a topic has to match. Topics that are created later belong
            to it, too.
        format: "parquet", "delta" (needs `rmqfast[delta]`) or "iceberg" (needs `rmqfast[iceberg]`).
        tags: Tag expression, or a list of tags.
        start_time: Earliest store time.
        end_time: Store time before which to stop; for stores only.
        partition: Partitions of a new table: some of "day" (the UTC day of `store_timestamp`, hidden in Iceberg),
            "topic", "broker_name", "queue_id" and "tags".
        compression: Of the Parquet files: "snappy", "zstd", "lz4", "gzip" or "none".
        mode: "resume" continues a table, or creates it. "error" only creates it. "append" also adds to a table that
            others have written. "overwrite" replaces a local directory of Parquet files when all messages are written.
        on_damage: "fail" ends at a step with bytes that cannot be read, or with messages that no longer exist. "warn"
            writes what is left; `Ingested.damage` and `Ingested.losses` list the rest.
        errors: Whether damaged bytes, and messages whose body cannot be decoded, go to the table `out` + "__errors"
            instead, with the reason and the raw bytes.
        catalog: Name of the catalog in pyiceberg's configuration.
        options: For Parquet at a URL, arguments of its class in `pyarrow.fs`, as `S3FileSystem`; for Delta, options of
            the storage; for Iceberg, properties of the catalog.
        commit_bytes: Bytes of the log in one commit. In a cluster, a message counts as 1 KiB.
        progress: Called with the bytes of the log, or messages, that are written, and with those to write.
        body: With `decode`, the table has the column `value`, too: see `rmqfast.store.DecodeArguments`.

    Raises:
        ArgumentError: The table has other columns, was begun with another selection, or was written by others.
        TableConflictError: Another ingest has written to the table meanwhile.
        CorruptError: There is damage, unless `on_damage` is "warn". Earlier steps stay written.
        DataLossError: Messages of the cluster no longer exist, unless `on_damage` is "warn".
        StoreBusyError: Another process writes to the directory.
        MissingExtraError: pyarrow, deltalake or pyiceberg is not installed.
        StoreIOError: The system, the object store or the catalog refuses.
        RmqError: The source cannot be read.

    Example:
        >>> from rmqfast.tables import ingest
        >>> store, out = getfixture("golden_store")("basic-4.9.4"), getfixture("tmp_path") / "orders"
        >>> ingest(store, out, ["fx_q1"], format="delta").rows
        1259
        >>> ingest(store, out, ["fx_q1"], format="delta").rows
        0
    """
    check_names(body, DecodeArguments)
    import_extra("pyarrow", "arrow")
    _check_choice("format", format, _FORMATS)
    _check_choice("mode", mode, _MODES)
    _check_choice("compression", compression, COMPRESSIONS)
    _check_choice("on_damage", on_damage, ("fail", "warn"))
    if mode == "overwrite" and format != "parquet":
        raise ArgumentError(
            f"mode: expected resume, error or append for {format}, got 'overwrite': drop the table first"
        )
    if isinstance(source, str | os.PathLike):
        source = local_path(source, "source")
    if topics is not None and pattern is not None:
        raise ArgumentError(f"pattern: expected none beside topics, got {pattern!r}")
    if errors:
        _list_errors(body)
    one_or_more = topics[0] if topics and len(topics) == 1 else topics
    wanted = {
        "tags": tags,
        "start_time": start_time,
        "end_time": end_time,
        "batch_rows": _BATCH_ROWS,
        "batch_bytes": _BATCH_BYTES,
        **body,
    }
    broker_name = source.broker_name if isinstance(source, MessageStore) else None
    request = ScanRequest.of(one_or_more, cast("Any", wanted), broker_name=broker_name, microseconds=True)
    selection = Selection(
        topics=None if topics is None else tuple(sorted(topics)),
        pattern=pattern,
        tags=request.tags,
        start_time=request.start_time,
        end_time=request.end_time,
    )
    started, fails = monotonic(), on_damage == "fail" and not errors
    with ExitStack() as stack:
        stack.enter_context(_silent_warnings())
        stack.enter_context(errors_name_storage(out, options or {}))
        step_bytes = integer("commit_bytes", commit_bytes, 1)
        places = [
            stack.enter_context(open_tables(format, source, place, mode=mode, catalog=catalog, options=options or {}))
            for place in _places(out, errors=errors)
        ]
        selected = partial(open_source, source, topics, request)
        opened = stack.enter_context(selected(pattern=pattern, step_bytes=step_bytes, fails=fails))
        opened_table = partial(open_table, initial=opened.offsets.initial(), selection=selection, mode=mode)
        table, position = opened_table(places[0], opened.schema, Partitioning.of_names(partition))
        table_of_errors = ErrorsTable(*opened_table(places[1], error_schema(), Partitioning(()))) if errors else None
        writer = StepWriter(
            opened,
            table,
            table_of_errors,
            compression=compression,
            spill=local_path(out, "out").parent if format == "parquet" and not is_url(out) else None,
        )
        idle_bytes = step_bytes // _IDLE_PART // (MESSAGE_BYTES if isinstance(source, MessageCluster) else 1)
        ingestion = Ingestion(opened, table, position, selection, table_of_errors, writer, fails, idle_bytes)
        ingestion.run(progress or _no_progress)
    counts = writer.counts
    return Ingested(
        rows=counts.rows,
        bytes=counts.bytes,
        seconds=monotonic() - started,
        commits=ingestion.commits,
        files=ingestion.files,
        damage=tuple(sorted(counts.damage, key=lambda place: (place.file, place.offset))),
        bad_bodies=counts.bad_bodies,
        decode_errors=tuple(counts.decode_errors),
        losses=(*opened.offsets.losses, *counts.losses),
        errors=counts.errors,
    )


def _list_errors(body: DecodeArguments) -> None:
    """Makes a scan list all bodies that it cannot decode."""
    if body.get("on_error", "null") == "fail":
        raise ArgumentError("on_error: expected none with errors=True, got 'fail'")
    if body.get("decode") is not None:
        body["on_error"] = "list"


def _places(out: str | os.PathLike[str], *, errors: bool) -> list[str]:
    """Returns the place of the table, and of that of errors."""
    place = os.fspath(out)
    return [place, place.rstrip("/") + SUFFIX] if errors else [place]


@contextmanager
def _silent_warnings() -> Iterator[None]:
    """Hides the warnings of scans: the report has all damage and all bad bodies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        warnings.simplefilter("ignore", DecodeWarning)
        yield


def _no_progress(_done: int, _total: int) -> None:
    pass


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ArgumentError(f"{name}: expected {', '.join(choices)}, got {value!r}")
