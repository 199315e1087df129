"""The data source `rocketmq-columnar` from Python: its jar, its options for a read, and whether it loads.

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
from rmqfast.spark.partitions import StoreRead, plan_partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


__all__ = ["columnar_frame", "frame_or_none", "jar_path", "load_frame", "option_text", "plain_error"]

_LOG = logging.getLogger("rmqfast.spark")
_JAR = Path(__file__).with_name("jars") / "rmqfast-columnar.jar"
#: As far as the frames of Java, or the end: what to do is a line of its own. Spark Connect has the class in brackets.
_SAID = re.compile(r"org\.rmqfast\.spark\.SourceException(?:: |\) )(\w+): (.*?)(?=\n\s+at |\n\s*\n|\Z)", re.DOTALL)
#: PySpark's own class has the words alone.
_PLAIN = re.compile(r"(?:\[\w+\] )?(\w+): (.*?)(?=\n\s+at |\n\s*\n|\n\nJVM stacktrace|\Z)", re.DOTALL)
_ANSWER = re.compile(r"CODE: (-?\d+)  DESC: (.*?)(?: BROKER: (\S+))?(?:\n.*)?", re.DOTALL)


def jar_path() -> Path | None:
    """The jar of the data source `rocketmq-columnar`, for `spark-submit --jars`; None where this package has none.

    Example:
        >>> jar = jar_path()
        >>> jar is None or jar.name
        'rmqfast-columnar.jar'
    """
    return _JAR if _JAR.is_file() else None


def columnar_frame(spark: SparkSession, read: StoreRead, engine: Literal["auto", "columnar"]) -> DataFrame | None:
    """A read by the columnar source, or None where it does not load; the log says which, and why.

    Args:
        spark: The session; its JVM has the jar if `configure` was asked before it started.
        read: What is read: what the log holds now, and it is missed where it is gone when a task comes for it.
        engine: With "columnar" it is worth a warning that it does not load.

    Raises:
        RmqError: As the source says.
    """
    # before the JVM is asked, so that what is wrong with the read is the same error for every engine
    range_now = _range_now(read)
    return frame_or_none(engine, _not_expressible(read), lambda: _load_store(spark, read, range_now))


def frame_or_none(
    engine: Literal["auto", "columnar"], unable: str | None, load: Callable[[], DataFrame]
) -> DataFrame | None:
    """The DataFrame of `load`; None if the columnar source cannot be used. The log says which, and why.

    Args:
        engine: With "columnar" it is worth a warning that it cannot.
        unable: Why this read is not for it; None where it is.
        load: Asks Spark for the frame.

    Raises:
        RmqError: As the source says.
    """
    why, frame = unable, None
    if unable is None:
        try:
            frame = load()
        except Exception as error:  # Spark's own class differs by version and by who talks to it
            refused = plain_error(error)
            # a plain RmqError is JNI's or a defect's: Python can read all the same
            if refused is not None and type(refused) is not errors.RmqError:
                raise refused from error
            why = _why_not(error)
    if frame is not None:
        _LOG.info("engine columnar: rows become columns inside the JVM")
    elif engine == "columnar" or (unable is None and "no data source" not in str(why)):
        # a session without the jar is no reason to warn where nobody asked for it
        _LOG.warning("engine arrow, as rocketmq-columnar cannot be used here: %s", why)
    else:
        _LOG.info("engine arrow: %s", why)
    return frame


def plain_error(error: BaseException) -> errors.RmqError | None:
    """The error of this package that the JVM told, if it was one.

    Args:
        error: What Spark raised.

    Example:
        >>> plain_error(RuntimeError("org.rmqfast.spark.SourceException: CorruptError: 3 damaged places"))
        CorruptError('3 damaged places')
    """
    said = _SAID.search(str(error))
    if said is None and type(error).__name__ == "IllegalArgumentException":
        said = _PLAIN.match(str(error))
        # of anybody else
        said = said if said is not None and _is_ours(said[1]) else None
    if said is None:
        return None
    # a newer jar may name a class that this package does not have
    kind: type[errors.RmqError] = getattr(errors, said[1], errors.RmqError)
    answer = _ANSWER.fullmatch(said[2])
    # made of its parts, unlike the others
    if kind is errors.ResponseError and answer is not None:
        return errors.ResponseError(int(answer[1]), answer[2], answer[3])
    return kind(said[2]) if kind is not errors.ResponseError else errors.RmqError(said[2])


def _is_ours(name: str) -> bool:
    kind = getattr(errors, name, None)
    return isinstance(kind, type) and issubclass(kind, errors.RmqError)


def _range_now(read: StoreRead) -> tuple[int, int]:
    """The stretch of the log that the read takes; the JVM cuts it. What is wrong with the read is raised here."""
    # one piece as long as the log: only its ends are wanted
    pieces = plan_partitions(replace(read, partition_bytes=1 << 62, min_partitions=None))
    return (pieces[0].start, pieces[-1].end) if pieces else (0, 0)


def _not_expressible(read: StoreRead) -> str | None:
    """Why the columnar source cannot do this read; None if it can."""
    request = read.request
    if read.io != "pread":
        return "it reads by pread only, a map that is cut off would end the JVM"
    if read.damage is not None:
        return "an accumulator takes damage from Python's workers only"
    # the option has offsets below a topic's name, and a read of all topics has none
    by_queue = isinstance(request.start_offset, Mapping) or isinstance(request.end_offset, Mapping)
    if by_queue and request.topic is None:
        return "offsets by queue need a topic"
    return None


def load_frame(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """The DataFrame of the source with these options."""
    frame = spark.read.format("rocketmq-columnar").options(**options).load()
    frame.schema  # noqa: B018  # now, not at the first action: Spark Connect looks for a source when it is asked for a schema
    return frame


def _load_store(spark: SparkSession, read: StoreRead, range_now: tuple[int, int]) -> DataFrame:
    from pyspark.sql import functions as f

    frame = load_frame(spark, _options(read, range_now))
    request = read.request
    # one number for all queues is no option of the source, but a filter that it takes exactly
    if isinstance(request.start_offset, int):
        frame = frame.where(f.col("queue_offset") >= request.start_offset)
    if isinstance(request.end_offset, int):
        frame = frame.where(f.col("queue_offset") < request.end_offset)
    # an empty list has no text, and as an option it would mean "all"
    if request.keys == () or request.queue_ids == ():
        frame = frame.where("false")
    return frame if request.columns is None else frame.select(*request.columns)


def _options(read: StoreRead, range_now: tuple[int, int]) -> dict[str, str]:
    request = read.request
    values: dict[str, Any] = {
        "storePath": read.path,
        "failOnDataLoss": read.on_damage == "fail",
        "columns": None,  # Spark selects them
        "startingOffsets": _by_queue(read, request.start_offset),
        "endingOffsets": _by_queue(read, request.end_offset),
        "logStart": range_now[0],
        "logEnd": range_now[1],
    }
    for name, argument in SparkOptions.arguments("store batch"):
        if name not in values:
            values[name] = getattr(request, argument, getattr(read, argument, None))
    texts = ((name, option_text(value)) for name, value in values.items())
    return {name: text for name, text in texts if text is not None}


def option_text(value: Any) -> str | None:
    """An option's text for an argument's value; None where it says nothing.

    Example:
        >>> option_text(True), option_text((1, 2)), option_text(["a,b"]), option_text(())
        ('true', '1,2', '["a,b"]', None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str):
        are_numbers = all(isinstance(each, int) for each in value)
        # JSON, as a key may hold a comma
        value = None if not value else ",".join(map(str, value)) if are_numbers else json.dumps(list(value))
    return None if value is None or not str(value).strip() else str(value)


def _by_queue(read: StoreRead, bound: int | Mapping[int, int] | None) -> str | None:
    """Offsets of the queues that the topic has, as of others there is nothing to read."""
    if not isinstance(bound, Mapping):
        return None
    with read.open() as store:
        queues = store.topics().get(read.request.topic or "", {})
    # -1 and -2 mean "latest" and "earliest" there, so no offset below 0 may cross
    offsets = {str(queue_id): max(offset, 0) for queue_id, offset in bound.items() if queue_id in queues}
    return json.dumps({read.request.topic: {"*": offsets}}) if offsets else None


def _why_not(error: Exception) -> str:
    text = str(error)
    if "DATA_SOURCE_NOT_FOUND" in text or "Failed to find" in text or "find data source" in text:
        return (
            "no data source rocketmq-columnar in this session; rmqfast.spark.configure adds its jar before one starts"
        )
    # py4j begins with a line of its own; once the library did not load, Java only says that it did not
    said = _SAID.search(text) or re.search(r"^: ((.*))$", text, re.MULTILINE)
    return said[2] if said else text.strip().partition("\n")[0]
