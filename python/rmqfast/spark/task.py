"""Tasks of a store read in a Python worker. A task scans a partition, yields batches and reports damage."""

from __future__ import annotations

import gc
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from rmqfast.errors import CorruptError, DamageWarning, DecodeWarning, StoreNotFoundError
from rmqfast.message import Damage
from rmqfast.spark.partitions import Partition, StorePart, StoreRead
from rmqfast.store import MessageStore
from rmqfast.store.lost_pieces import clip_to_log, log_bounds

if TYPE_CHECKING:
    import pyarrow as pa

_LOG = logging.getLogger("rmqfast.spark")
_MOST_LISTED = 20

Piece = TypeVar("Piece")
_is_frozen = False


def read_part(part: StorePart) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a part of a store's log. See `read_partition`."""
    return read_partition(part.read, part.partition)


def read_partition(read: StoreRead, partition: Partition) -> Iterator[pa.RecordBatch]:
    """Yields the batches of one partition.

    Raises:
        CorruptError: There is damage, or part of the log has expired, and `on_damage` is "fail". Raised after the
            partition's last batch.
    """
    freeze_imports_once()
    with _open(read) as store:
        # Lost parts are reported after the last row, with all other damage.
        held, lost = clip_to_log(partition, log_bounds(store), store.path, read.request.broker_name)
        scan = store.scan_pieces(read.request, [held])
        with warnings.catch_warnings():
            # reported below, with all places
            warnings.simplefilter("ignore", DamageWarning)
            warnings.simplefilter("ignore", DecodeWarning)
            for batch in scan.batches():
                # A topic filter on a read of all topics: the scan also reads records that no queue lists.
                yield batch if read.only_topic is None else _of_topic(batch, read.only_topic)
    # before an error because of damage
    if scan.decode_report is not None:
        _LOG.warning("%s, commit log %d to %d: %s", read.place, partition.start, partition.end, scan.decode_report)
    _tell(read, partition, [*lost, *scan.damage])


def read_numbered(
    read_piece: Callable[[Piece], Iterator[pa.RecordBatch]],
    pieces: Sequence[Piece],
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yields the batches of the pieces whose indexes are in the first column of `numbers`."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from read_piece(pieces[number])


def freeze_imports_once() -> None:
    """Excludes the modules that this worker has imported from garbage collection, which Spark runs after each task."""
    from pyspark import TaskContext

    global _is_frozen  # noqa: PLW0603  # once in a process
    # Never in a driver, whose objects belong to the user.
    if not _is_frozen and TaskContext.get() is not None:
        _is_frozen = True
        # Otherwise present garbage would be kept forever.
        gc.collect()
        # Otherwise 24 ms of collection follow each task, a tenth of the CPU time of a 16 MiB task (PySpark 4.3).
        gc.freeze()


def _open(read: StoreRead) -> MessageStore:
    try:
        return read.open()
    except StoreNotFoundError as error:
        error.add_note("the driver planned this read; the store must be at the same path on every executor")
        raise


def _of_topic(batch: pa.RecordBatch, topic: str) -> pa.RecordBatch:
    import pyarrow.compute as pc

    return batch.filter(pc.equal(batch.column("topic"), topic))


def _tell(read: StoreRead, partition: Partition, damage: Sequence[Damage]) -> None:
    if not damage:
        return
    places = [f"{d.file} at offset {d.offset}, {d.length} bytes: {d.reason}" for d in damage[:_MOST_LISTED]]
    if len(damage) > _MOST_LISTED:
        places.append(f"and {len(damage) - _MOST_LISTED} more")
    where = f"{read.place}, commit log {partition.start} to {partition.end}"
    text = f"{where}: {len(damage)} damaged places: {'; '.join(places)}"
    if read.on_damage == "fail":
        raise CorruptError(f'{text}; on_damage="warn" (failOnDataLoss=false) reads what is left')
    if read.damage is None:
        _LOG.warning("%s", text)
    else:
        read.damage.add(frozenset(damage))
