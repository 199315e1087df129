"""The options of `spark.read.format("rocketmq")` for a store directory, as a Python object.

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

_LOG = logging.getLogger("rmqfast.spark")
_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"

_OF_REQUEST = frozenset(field.name for field in fields(ScanRequest))
_OF_READ = frozenset({"commit_log_dirs", "io", "min_partitions", "partition_bytes"})


@dataclass(frozen=True)
class SourceOptions:
    """Options of the data source. `rust/spark` parses them.

    `given` holds the strings, `values` the arguments of reads by name; None without option and default.
    """

    given: Mapping[str, str]
    values: Mapping[str, Any]
    kind: str

    @classmethod
    def of(cls, options: Mapping[str, str], kind: str = "store batch") -> SourceOptions:
        """Parses the options of a "store batch" or a "store stream" (`kind`). Case in option names does not matter."""
        return cls(dict(options), SparkOptions(kind, dict(options)).values, kind)

    @classmethod
    def of_stores(cls, options: Mapping[str, str], kind: str = "store batch") -> list[SourceOptions]:
        """Parses the options of one store, or of those of several brokers: those of each."""
        return [cls.of(own, kind) for own in _native.store_options(kind, dict(options))]

    @property
    def parsed(self) -> SparkOptions:
        """The options as `rust/spark` parses them. A new object, since it cannot be pickled."""
        return SparkOptions(self.kind, dict(self.given))

    @property
    def columns(self) -> tuple[str, ...] | None:
        columns: tuple[str, ...] | None = self.values["columns"]
        return columns

    def read(self, columns: Sequence[str] | None) -> StoreRead:
        """Returns the read of some columns. Offsets are resolved against the current store.

        Raises `CorruptError` for an expired start offset, unless `failOnDataLoss` is false.
        """
        read = self.read_of_all(columns)
        native = SparkOptions("store batch", dict(self.given))
        if native.are_offsets_whole():
            return read
        with read.open() as store:
            first, last = native.offset_bounds(store.topics().get(self.values["topic"], {}))
        return self.read_of_all(columns, start_offset=first or None, end_offset=last or None)

    def read_of_all(self, columns: Sequence[str] | None, **bounds: Mapping[int, int] | None) -> StoreRead:
        """Returns the read of some columns, between `start_offset` and `end_offset` if these are given."""
        values = {name: value for name, value in self.values.items() if value is not None}
        of_request = {name: values[name] for name in values.keys() & _OF_REQUEST}
        request = ScanRequest(**of_request | bounds | {"columns": columns, "microseconds": True})
        on_damage: Any = "fail" if values["fail_on_data_loss"] else "warn"
        of_read = {name: values[name] for name in values.keys() & _OF_READ}
        return StoreRead(path=values["store_path"], request=request, on_damage=on_damage, **of_read)


def names_a_cluster(options: Mapping[str, str]) -> bool:
    """Whether the options select a live cluster instead of a store directory."""
    return _native.names_a_cluster(dict(options))


def gets_filters(*, is_wanted: bool) -> bool:
    """Returns whether readers get a method `pushFilters`, with which a query fails if Spark's push-down is off.

    `is_wanted` is the option `pushdown`.
    """
    # PySpark pushes filters in a process of its own; only there the setting is known to be on.
    if not is_wanted or _PUSHDOWN_WORKER in sys.orig_argv:
        return is_wanted
    _LOG.warning("pushdown: no filter came; is spark.sql.python.filterPushdown.enabled on (PySpark 4.1 or newer)?")
    return False
