"""The data source `rocketmq-columnar` from Python: its jar, its options, and why it cannot be used.

Source: `spark.jars` and `TableProvider.getTable` of Spark; `SourceException` of the jar.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rmqfast import errors
from rmqfast._native import SparkOptions
from rmqfast.cluster.topic_options import option_texts
from rmqfast.spark.partitions import StoreRead, plan_partitions
from rmqfast.store import ScanRequest
from rmqfast.store.decode import VALUE, is_decoded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger("rmqfast.spark")
_JAR = Path(__file__).with_name("jars") / "rmqfast-columnar.jar"
#: Ends before Java's stack frames or a blank line. Spark Connect puts the class in brackets.
_SAID = re.compile(r"org\.rmqfast\.spark\.SourceException(?:: |\) )(\w+): (.*?)(?=\n\s+at |\n\s*\n|\Z)", re.DOTALL)
#: PySpark's own exception classes carry only the message.
_PLAIN = re.compile(r"(?:\[\w+\] )?(\w+): (.*?)(?=\n\s+at |\n\s*\n|\n\nJVM stacktrace|\Z)", re.DOTALL)
_ANSWER = re.compile(r"CODE: (-?\d+)  DESC: (.*?)(?: BROKER: (\S+))?(?:\n.*)?", re.DOTALL)


def jar_path() -> Path | None:
    """Returns the jar of the data source `rocketmq-columnar`, for `spark-submit --jars`; None if it is not installed.

    Example:
        >>> jar = jar_path()
        >>> jar is None or jar.name
        'rmqfast-columnar.jar'
    """
    return _JAR if _JAR.is_file() else None


def columnar_frame(
    spark: SparkSession, reads: Sequence[StoreRead], engine: Literal["auto", "columnar"]
) -> DataFrame | None:
    """Returns the reads of one store, or of those of several brokers, as a columnar DataFrame.

    If this is not possible, logs the reason and returns None.

    The log range is fixed now. Files that expire before a task reads them are reported as damage.
    """
    # Plan before asking the JVM, so that a wrong argument raises the same error with every engine.
    ranges = [_range_now(read) for read in reads]
    return frame_or_none(engine, _not_expressible(reads[0]), lambda: _load_stores(spark, reads, ranges))


def frame_or_none(
    engine: Literal["auto", "columnar"], unable: str | None, load: Callable[[], DataFrame]
) -> DataFrame | None:
    """Returns the DataFrame of `load`. If the columnar source cannot be used, logs the reason and returns None.

    `unable` is a reason known beforehand. A missing source is a warning only with the engine "columnar".
    """
    why, frame = unable, None
    if unable is None:
        try:
            frame = load()
        except Exception as error:  # its class differs between Spark versions and Spark Connect
            refused = plain_error(error)
            # A plain RmqError comes from JNI or a defect, neither of which keeps Python from reading.
            if refused is not None and type(refused) is not errors.RmqError:
                raise refused from error
            why = _why_not(error)
    if frame is not None:
        _LOG.info("engine columnar: rows become columns inside the JVM")
    elif engine == "columnar" or (unable is None and "no data source" not in str(why)):
        # With "auto", a session without the jar is normal and no reason for a warning.
        _LOG.warning("engine arrow, as rocketmq-columnar cannot be used here: %s", why)
    else:
        _LOG.info("engine arrow: %s", why)
    return frame


def plain_error(error: BaseException) -> errors.RmqError | None:
    """Returns the rmqfast error that the JVM has reported. None for any other error."""
    said = _SAID.search(str(error))
    if said is None and type(error).__name__ == "IllegalArgumentException":
        said = _PLAIN.match(str(error))
        # Other libraries raise the same Java class; only an rmqfast error name makes it ours.
        said = said if said is not None and _is_ours(said[1]) else None
    if said is None:
        return None
    # A newer jar may name an error class that this package lacks.
    kind: type[errors.RmqError] = getattr(errors, said[1], errors.RmqError)
    answer = _ANSWER.fullmatch(said[2])
    # Unlike the other errors, `ResponseError` is built from code, text and address.
    if kind is errors.ResponseError and answer is not None:
        return errors.ResponseError(int(answer[1]), answer[2], answer[3])
    return kind(said[2]) if kind is not errors.ResponseError else errors.RmqError(said[2])


def _is_ours(name: str) -> bool:
    kind = getattr(errors, name, None)
    return isinstance(kind, type) and issubclass(kind, errors.RmqError)


def _range_now(read: StoreRead) -> tuple[int, int]:
    """Returns the log range that the read has now. The JVM cuts it into pieces. Raises an error for an invalid read."""
    # A piece as long as the log: only the ends of the range are needed.
    pieces = plan_partitions(replace(read, partition_bytes=1 << 62, min_partitions=None))
    return (pieces[0].start, pieces[-1].end) if pieces else (0, 0)


def _not_expressible(read: StoreRead) -> str | None:
    """Returns the reason why the columnar source cannot do this read. None if it can."""
    request = read.request
    if read.io != "pread":
        return "it reads by pread only, a map that is cut off would end the JVM"
    if read.damage is not None:
        return "an accumulator takes damage from Python's workers only"
    # The option nests offsets below a topic's name, which a read of all topics lacks.
    by_queue = isinstance(request.start_offset, Mapping) or isinstance(request.end_offset, Mapping)
    if by_queue and request.topic is None:
        return "offsets by queue need a topic"
    return None


def load_frame(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    frame = spark.read.format("rocketmq-columnar").options(**options).load()
    frame.schema  # noqa: B018  # Spark Connect resolves a source when its schema is requested: fail now
    return frame


def _load_stores(spark: SparkSession, reads: Sequence[StoreRead], ranges: Sequence[tuple[int, int]]) -> DataFrame:
    from pyspark.sql import functions as f

    request = reads[0].request
    options = _options(reads, ranges)
    if request.decode is not None and request.columns is not None:
        # The option chooses fields. Spark leaves out the offset if no filter needs it.
        options |= option_texts({"columns": list(dict.fromkeys([*request.columns, "queue_offset"]))})
    frame = load_frame(spark, options)
    # The option knows only offsets by queue; the source applies this filter exactly.
    if isinstance(request.start_offset, int):
        frame = frame.where(f.col("queue_offset") >= request.start_offset)
    if isinstance(request.end_offset, int):
        frame = frame.where(f.col("queue_offset") < request.end_offset)
    # An empty list selects no message, but as an option it would mean "all".
    if request.keys == () or request.queue_ids == ():
        frame = frame.where("false")
    return frame if request.columns is None else frame.select(*heads(request))


def heads(request: ScanRequest) -> list[str]:
    """Returns the names of a request's columns, `value` once in place of its fields."""
    is_field = is_decoded if request.decode is not None else lambda _: False
    return list(dict.fromkeys(VALUE if is_field(name) else name for name in request.columns or ()))


def decode_options(request: ScanRequest) -> dict[str, Any]:
    """Returns the options that decode bodies. None has a value without `decode`."""
    if request.decode is None:
        return {"decode": None, "valueSchema": None, "framing": None, "schemaId": None, "onDecodeError": None}
    return {
        "decode": request.decode,
        "valueSchema": request.schema,
        "framing": request.framing,
        "schemaId": request.schema_id,
        "onDecodeError": request.on_error,
    }


def _options(reads: Sequence[StoreRead], ranges: Sequence[tuple[int, int]]) -> dict[str, str]:
    read = reads[0]
    values: dict[str, Any] = {
        "failOnDataLoss": read.on_damage == "fail",
        "columns": None,  # Spark selects them
        **decode_options(read.request),
    }
    own = [_options_of_store(each, range_now) for each, range_now in zip(reads, ranges, strict=True)]
    if len(own) == 1:
        values |= own[0]
    else:
        # `StoreOptions` of `rust/spark` parses these
        values |= dict.fromkeys(own[0])
        values["storePath"] = json.dumps({each.request.broker_name: each.path for each in reads})
        values["stores"] = json.dumps({each["brokerName"]: option_texts(each) for each in own})
    for name, argument in SparkOptions.arguments("store batch"):
        if name not in values:
            values[name] = getattr(read.request, argument, getattr(read, argument, None))
    return option_texts(values)


def _options_of_store(read: StoreRead, range_now: tuple[int, int]) -> dict[str, Any]:
    return {
        "storePath": read.path,
        "brokerName": read.request.broker_name,
        "commitLogDirs": read.commit_log_dirs,
        "storeHosts": json.dumps(read.store_hosts) if read.store_hosts else None,
        "startingOffsets": _by_queue(read, read.request.start_offset),
        "endingOffsets": _by_queue(read, read.request.end_offset),
        "logStart": range_now[0],
        "logEnd": range_now[1],
    }


def _by_queue(read: StoreRead, bound: int | Mapping[int, int] | None) -> str | None:
    """Returns the bounds of existing queues as JSON for an option. None if no queue has a bound of its own."""
    if not isinstance(bound, Mapping):
        return None
    with read.open() as store:
        queues = store.topics().get(read.request.topic or "", {})
    # The option reads -1 as "latest" and -2 as "earliest", so negative offsets become 0.
    offsets = {str(queue_id): max(offset, 0) for queue_id, offset in bound.items() if queue_id in queues}
    return json.dumps({read.request.topic: {"*": offsets}}) if offsets else None


def _why_not(error: Exception) -> str:
    text = str(error)
    if "DATA_SOURCE_NOT_FOUND" in text or "Failed to find" in text or "find data source" in text:
        return (
            "no data source rocketmq-columnar in this session; rmqfast.spark.configure adds its jar before one starts"
        )
    # py4j puts a line of its own first. Once the native library failed to load, Java no longer says why.
    said = _SAID.search(text) or re.search(r"^: ((.*))$", text, re.MULTILINE)
    return said[2] if said else text.strip().partition("\n")[0]
