"""Spark reads RocketMQ: `read_store` and `read_topic` from PySpark 3.5 on, the data source `rocketmq` from 4.0 on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqfast.errors import MissingExtraError
from rmqfast.extras import is_missing
from rmqfast.spark.columnar import jar_path
from rmqfast.spark.examination import examine_spark
from rmqfast.spark.mapping import map_store
from rmqfast.spark.partitions import MapArguments, StoreReadArguments
from rmqfast.spark.reader import read_store
from rmqfast.spark.session import configure
from rmqfast.spark.sink import write_topic

if TYPE_CHECKING:
    from rmqfast.spark.live.reader import read_topic
    from rmqfast.spark.source import RocketMQDataSource
    from rmqfast.spark.table_creation import create_table

__all__ = [
    "MapArguments",
    "RocketMQDataSource",
    "StoreReadArguments",
    "configure",
    "create_table",
    "examine_spark",
    "jar_path",
    "map_store",
    "read_store",
    "read_topic",
    "write_topic",
]


def __getattr__(name: str) -> Any:
    """Imports names at first use: PySpark 3.5 cannot load the data source, and the others are of no use to workers."""
    if name == "read_topic":
        from rmqfast.spark.live.reader import read_topic

        return read_topic
    if name == "create_table":
        from rmqfast.spark.table_creation import create_table

        return create_table
    if name != "RocketMQDataSource":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from rmqfast.spark.source import RocketMQDataSource
    except ImportError as error:
        # PySpark 3.5 lacks the module `pyspark.sql.datasource`; any other missing module is a missing package.
        if is_missing(error, "pyspark", "py4j", "pyarrow", "pandas", "numpy"):
            text = f"the data source needs {error.name}: pip install 'rmqfast[spark]'"
            raise MissingExtraError(text, name=error.name) from None
        if not (error.name or "").startswith("pyspark."):
            raise
        raise MissingExtraError(f"the data source needs PySpark 4.0 or newer; use read_store: {error}") from error
    return RocketMQDataSource
