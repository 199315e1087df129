"""The options of `spark.read.format("rocketmq")` for a store directory, as values.

Source: `RocketMQConfig` of rocketmq-spark, whose names are kept; `DataSource.options` and
`data_source_pushdown_filters` of PySpark.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from rmqfast import _native
from rmqfast._native import SparkOptions
from rmqfast.spark.partitions import StoreRead
from rmqfast.store import ScanRequest

__all__ = ["SourceOptions", "gets_filters", "names_a_cluster"]

_LOG = logging.getLogger("rmqfast.spark")
_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"

_OF_REQUEST = frozenset(field.name for field in fields(ScanRequest))
_OF_READ = frozenset({"commit_log_dirs", "io", "min_partitions", "partition_bytes"})


@dataclass(frozen=True)
class SourceOptions:
    """The options of the data source, parsed by `rust/spark`.

    Attributes:
        given: The texts.
        values: Arguments of reads by name; None where neither the text nor a default gives a value.

    Example:
        >>> SourceOptions.of({"storepath": "/data/store", "queueIds": "0, 1"}).values["queue_ids"]
        (0, 1)
    """

    given: Mapping[str, str]
    values: Mapping[str, Any]

    @classmethod
    def of(cls, options: Mapping[str, str], kind: str = "store batch") -> SourceOptions:
        """Parses the options of a "store batch" or a "store stream"; their names may be in any case.

        Raises:
            ArgumentError: An unknown name, a text that is no such value, a value out of range.

        Example:
            >>> SourceOptions.of({"path": "/data/store", "subExpression": "A || B"}).values["tags"]
            'A || B'
        """
        return cls(dict(options), SparkOptions(kind, dict(options)).values)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Columns of the row, in order."""
        columns: tuple[str, ...] | None = self.values["columns"]
        return columns

    def read(self, columns: Sequence[str] | None) -> StoreRead:
        """The read of the given columns, with offsets resolved against the store as it is now.

        Raises:
            CorruptError: A starting offset that has expired, unless `failOnDataLoss` is false.
        """
        read = self.read_of_all(columns)
        native = SparkOptions("store batch", dict(self.given))
        if native.are_offsets_whole():
            return read
        with read.open() as store:
            first, last = native.offset_bounds(store.topics().get(self.values["topic"], {}))
        return self.read_of_all(columns, start_offset=first or None, end_offset=last or None)

    def read_of_all(self, columns: Sequence[str] | None, **bounds: Mapping[int, int] | None) -> StoreRead:
        """The read of the given columns, between `start_offset` and `end_offset` if given."""
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


def gets_filters(*, is_wanted: bool) -> bool:
    """Whether a reader of this process shall have `pushFilters`, which fails the query if Spark pushes no filters.

    Args:
        is_wanted: The option `pushdown`.

    Example:
        >>> gets_filters(is_wanted=False)
        False
    """
    # PySpark starts a process of its own to push filters: only there the setting is known to be on
    if not is_wanted or _PUSHDOWN_WORKER in sys.orig_argv:
        return is_wanted
    _LOG.warning("pushdown: no filter came; is spark.sql.python.filterPushdown.enabled on (PySpark 4.1 or newer)?")
    return False
