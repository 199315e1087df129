"""Topics of a live cluster out of a mirror's copies: the cluster says which offsets, the messages come from a disk."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rmqfast._native import TopicRead, read_piece
from rmqfast.errors import ArgumentError
from rmqfast.mirror.copy_directory import kept_topics
from rmqfast.spark.partitions import StoreReadArguments
from rmqfast.spark.reader import Engine, read_store
from rmqfast.spark.schema import row_schema
from rmqfast.store import open_store
from rmqfast.store.replica import newest_copy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CopiedTopic", "copied_topics", "read_copies"]

_LOG = logging.getLogger("rmqfast.spark")


class CopiedTopic(NamedTuple):
    """What to read of a topic out of the copy of one broker.

    Attributes:
        start: The first offset of each queue, where it is not the copy's own.
        end: The offset behind the last of each queue.
    """

    path: Path
    broker_name: str
    topic: str
    start: Mapping[int, int] | None
    end: Mapping[int, int]


def copied_topics(read: TopicRead, mirror_path: str | os.PathLike[str], *, from_start: bool) -> list[CopiedTopic]:
    """What to read out of copies, a topic of a broker each; one line of the log says so.

    Args:
        read: Which topics and offsets, as the cluster knows them.
        mirror_path: What `rmqfast mirror` was given: it has a directory for each broker.
        from_start: Whether a queue begins where its copy does, which may have more than the broker.

    Raises:
        ArgumentError: There is no copy of a broker that has messages, or it does not keep the topic.
        StoreError: A copy cannot be read.
        RmqError: As `TopicRead.plan`.

    Source: none.
    """
    ranges: dict[tuple[str, str], dict[int, tuple[int, int]]] = {}
    for piece in read.plan():
        for topic, broker_name, queue, start, end in read_piece(piece)[1]:
            own = ranges.setdefault((broker_name, topic), {})
            least, most = own.get(queue, (start, end))
            own[queue] = min(start, least), max(end, most)
    copied, told = [], []
    for (broker_name, topic), by_queue in ranges.items():
        path = newest_copy(Path(mirror_path) / broker_name)
        if not path.is_dir():
            raise ArgumentError(
                f"mirror_path: expected a copy of {broker_name} below {mirror_path}, got none; "
                f"rmqfast mirror --all-brokers makes one of each"
            )
        kept = kept_topics(path)
        if kept and topic not in kept:
            raise ArgumentError(
                f"mirror_path: expected a copy of {topic} at {path}, got one of {', '.join(kept)}; "
                f"rmqfast mirror --topics {topic} makes one in another directory"
            )
        with open_store(path) as store:
            there = store.topics().get(topic, {})
        ends = {queue: min(end, there.get(queue, (0, 0))[1]) for queue, (_, end) in by_queue.items()}
        behind = sum(end - max(start, ends[queue]) for queue, (start, end) in by_queue.items())
        starts = None if from_start else {queue: start for queue, (start, _) in by_queue.items()}
        # a topic that came after the copy's last message is all behind
        if there:
            copied.append(CopiedTopic(path, broker_name, topic, starts, ends))
        told.append(f"{topic} of {broker_name}" + (f", whose last {behind} messages it has not yet" if behind else ""))
    _LOG.info("read out of the copies in %s: %s", mirror_path, "; ".join(told) or "nothing")
    return copied


def read_copies(
    spark: SparkSession, copied: Sequence[CopiedTopic], engine: Engine, arguments: StoreReadArguments
) -> DataFrame:
    """The messages of all copies as one DataFrame.

    Args:
        spark: The session.
        copied: What to read.
        engine: As of `read_store`.
        arguments: Which messages and columns; which queues and offsets, `copied` says.

    Raises:
        RmqError: As `read_store`.

    Source: none.
    """
    if not copied:
        nothing: DataFrame = spark.createDataFrame([], row_schema(arguments.get("columns")))
        return nothing
    least = arguments.get("min_partitions")
    share = None if least is None else -(-least // len(copied))
    frames = []
    for one in copied:
        own: StoreReadArguments = {
            **arguments,
            "min_partitions": share,
            "broker_name": one.broker_name,
            "queue_ids": sorted(one.end),
            "start_offset": one.start,
            "end_offset": one.end,
        }
        frames.append(read_store(spark, one.path, one.topic, engine=engine, **own))
    return reduce(lambda first, other: first.unionByName(other), frames)
