"""What a task does with the rows of its partition, in a Python worker of an executor."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rmqfast.client.producer import RowProducer
from rmqfast.spark.sink.options import SinkOptions
from rmqfast.spark.sink.queue_choice import QueueChoice
from rmqfast.spark.sink.row_groups import Target
from rmqfast.spark.sink.sender import Sender
from rmqfast.spark.sink.written import Written

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_topic", "send_partition"]

_LOG = logging.getLogger("rmqfast.spark")


def check_topic(options: SinkOptions, columns: Sequence[str]) -> None:
    """Asks a name server whether the topic is there, before any task does.

    Args:
        options: With a topic, or the rows say where they go, and the tasks find out.
        columns: Those that are sent.

    Raises:
        ClientError: Nobody has the topic and no broker would make it, or no name server answers; or several brokers
            have the queues that `queue_id` names, and there is no `broker_name`.
        RemotingError: The name server refuses this client.
    """
    with _producer(options) as producer:
        if options.topic is None:
            return
        target, choice = Target(options.topic), QueueChoice(producer)
        queues = choice.of(target)
        if "queue_id" in columns and "broker_name" not in columns:
            choice.of(target._replace(queue_id=min(queue.queue_id for queue in queues)))


def send_partition(options: SinkOptions, columns: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Written:
    """Sends the rows of a partition, and waits until brokers have stored all of them.

    Args:
        options: Where to, and how.
        columns: Those that are sent.
        batches: The rows.

    Raises:
        ClientError: A row that cannot be sent: says which, and why. Rows before it may be stored, and some behind it.

    Source: `DefaultMQProducer.send`.
    """
    filled = _filled(columns, batches)
    # a partition without rows opens no connection
    first = next(filled, None)
    if first is None:
        return Written()
    partition, attempt = _task()
    began = time.monotonic()
    with _producer(options) as producer:
        sender = Sender(producer, options, partition)
        try:
            sender.add(first)
            for batch in filled:
                sender.add(batch)
            written = sender.finish()
        finally:
            sender.stop()
    seconds = time.monotonic() - began
    _LOG.info("partition %d, attempt %d: %s to %s, %.2f s", partition, attempt, written, options.topic, seconds)
    # FLUSH_DISK_TIMEOUT and the like: stored, so no error, but somebody should know
    if written.less_safe:
        _LOG.warning("partition %d: %d requests are stored less safely than asked for", partition, written.less_safe)
    return written


def _filled(columns: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches that have rows, without other columns."""
    names = list(columns)
    for batch in batches:
        if batch.num_rows:
            yield batch.select(names)


def _producer(options: SinkOptions) -> RowProducer:
    return RowProducer(options.group, options.client_config(), options.producer_options())


def _task() -> tuple[int, int]:
    """The partition, and which attempt at it this is."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.partitionId(), context.attemptNumber()) if context is not None else (0, 0)
