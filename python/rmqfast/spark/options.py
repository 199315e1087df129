"""The options of `spark.read.format("rocketmq")` for a store directory, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from rmqfast import _native
from rmqfast._native import SparkOptions
from rmqfast.spark.partitions import StoreRead
from rmqfast.store import ScanRequest

__all__ = ["SourceOptions", "names_a_cluster"]

_OF_REQUEST = frozenset(field.name for field in fields(ScanRequest))
_OF_READ = frozenset({"commit_log_dirs", "io", "min_partitions", "partition_bytes"})


@dataclass(frozen=True)
class SourceOptions:
    """The options of the data source as values; what each text means `rust/spark` says.

    Attributes:
        given: The texts.
        values: Arguments of reads by name; None where neither the text nor a default gives a value.

    Example:
        >>> SourceOptions.of({"storepath": "/data/store", "queueIds": "0, 1"}).values["queue_ids"]
        (0, 1)

    Source: `RocketMQConfig` of rocketmq-spark, whose names are kept.
    """

    given: Mapping[str, str]
    values: Mapping[str, Any]

    @classmethod
    def of(cls, options: Mapping[str, str], kind: str = "store batch") -> SourceOptions:
        """Reads options; their names may be in any case.

        Args:
            options: As Spark gives them to a data source.
            kind: "store batch", or "store stream", which has no end.

        Raises:
            ArgumentError: An unknown name, a text that is no such value, a value out of range.

        Example:
            >>> SourceOptions.of({"path": "/data/store", "subExpression": "A || B"}).values["tags"]
            'A || B'

        Source: `DataSource.options` of PySpark.
        """
        return cls(dict(options), SparkOptions(kind, dict(options)).values)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Columns of the row, in order."""
        columns: tuple[str, ...] | None = self.values["columns"]
        return columns

    def read(self, columns: Sequence[str] | None) -> StoreRead:
        """What shall be read, with offsets as the store now stands.

        Args:
            columns: Columns of the row, in order.

        Raises:
            CorruptError: A starting offset that has expired, unless `failOnDataLoss` is false.
            RmqError: As `StoreRead` and `open_store` raise.

        Source: as `SourceOptions`.
        """
        read = self.read_of_all(columns)
        native = SparkOptions("store batch", dict(self.given))
        if native.are_offsets_whole():
            return read
        with read.open() as store:
            first, last = native.offset_bounds(store.topics().get(self.values["topic"], {}))
        return self.read_of_all(columns, start_offset=first or None, end_offset=last or None)

    def read_of_all(self, columns: Sequence[str] | None, **bounds: Mapping[int, int] | None) -> StoreRead:
        """What shall be read of any stretch of the log, wherever offsets begin and end.

        Args:
            columns: Columns of the row, in order.
            bounds: `start_offset` and `end_offset` of the scan.

        Raises:
            RmqError: As `StoreRead` raises.

        Source: as `SourceOptions`.
        """
        values = {name: value for name, value in self.values.items() if value is not None}
        of_request = {name: values[name] for name in values.keys() & _OF_REQUEST}
        request = ScanRequest(**of_request | bounds | {"columns": columns, "microseconds": True})
        on_damage: Any = "fail" if values["fail_on_data_loss"] else "warn"
        of_read = {name: values[name] for name in values.keys() & _OF_READ}
        return StoreRead(path=values["store_path"], request=request, on_damage=on_damage, **of_read)


def names_a_cluster(options: Mapping[str, str]) -> bool:
    """Whether options are those of a live cluster, not of a store directory.

    Example:
        >>> names_a_cluster({"NAMESERVER": "10.0.0.1:9876"}), names_a_cluster({"path": "/data/store"})
        (True, False)
    """
    return _native.names_a_cluster(dict(options))
