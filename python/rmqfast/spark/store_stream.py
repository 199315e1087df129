"""Streams a store directory, by following the log that a live broker writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqfast._native import SparkStream, read_store_piece
from rmqfast.spark.live.stream_reader import StreamReader, bytes_limit
from rmqfast.spark.options import SourceOptions
from rmqfast.spark.partitions import Partition, StoreRead
from rmqfast.spark.schema import agree_on_columns
from rmqfast.spark.task import read_partition

if TYPE_CHECKING:
    import pyarrow as pa


def store_stream_reader(options: Mapping[str, str], columns: Sequence[str]) -> StreamReader:
    """Returns the stream reader. Its offsets `{"log": 123456}` are log positions, as in `MessageStore.tail`."""
    store = SourceOptions.of(options, "store stream")
    read = store.read_of_all(agree_on_columns(store.columns, columns))
    return StreamReader(_StoreSource(dict(options), read, store.values["max_bytes_per_trigger"]))


@dataclass(frozen=True)
class _StoreSource:
    options: dict[str, str]
    read_of: StoreRead
    most: int | None

    def open(self) -> SparkStream:
        return SparkStream.of_store(self.options)

    def default_limit(self) -> Any:
        return bytes_limit(self.most)

    def unheard_limits(self) -> str | None:
        return None if self.most is None else "maxBytesPerTrigger needs"

    def read(self, piece: bytes) -> Iterator[pa.RecordBatch]:
        return read_partition(self.read_of, Partition(*read_store_piece(piece)))
