"""Settings of a Spark session that reading a store wants."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rmqfast.spark.columnar import jar_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["configure"]

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming"
_EXTENSIONS = "spark.sql.extensions"
_ROWS = "org.rmqfast.spark.RocketMQExtensions"


def configure(builder: SparkSession.Builder, *, local_checkpoints: bool = False) -> SparkSession.Builder:
    """Sets what makes reads fast and workers find this package, before a session starts.

    The jar of the data source `rocketmq-columnar` joins those of `spark.jars` that the builder has by then. From
    PySpark 4.0 on, a class of it joins those of `spark.sql.extensions`: where a query needs rows of all columns, Rust
    makes them.

    Workers run this Python unless `PYSPARK_PYTHON` says otherwise. From PySpark 4.1 on they talk to the JVM by Unix
    sockets, and the data source's option `pushdown` works; older ones do not know these settings and leave them alone.

    A client of Spark Connect cannot set these: its builder comes back as it is, and its server is told them.

    Args:
        builder: As `SparkSession.builder`.
        local_checkpoints: The checkpoints of all streams lie on a local file system: the two files of a batch take less
            time then. Not for HDFS, where the usual manager of these files keeps two runs of a query apart.

    Returns:
        The builder.

    Example:
        >>> from pyspark.sql import SparkSession
        >>> builder = configure(SparkSession.builder.master("local[2]"))
    """
    # a builder tells its options nowhere else, and what the user has set must not be replaced
    options = getattr(builder, "_options", {})
    if str(options.get("spark.remote", "")).startswith("sc://"):
        return builder
    # workers must find this package, and another Python may not have it
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jar = jar_path()
    if jar is not None:
        builder = builder.config("spark.jars", _append(options.get("spark.jars"), str(jar)))
    import pyspark

    version = tuple(map(int, pyspark.__version__.split(".")[:2]))
    # compiled against the Scala of Spark 4
    if jar is not None and version >= (4, 0):
        builder = builder.config(_EXTENSIONS, _append(options.get(_EXTENSIONS), _ROWS))
    if local_checkpoints:
        # Spark moved it in 4.1
        package = f"{_PACKAGE}.checkpointing" if version >= (4, 1) else _PACKAGE
        builder = builder.config(_MANAGER, f"{package}.FileSystemBasedCheckpointFileManager")
    return builder.config("spark.python.unix.domain.socket.enabled", "true").config(
        "spark.sql.python.filterPushdown.enabled", "true"
    )


def _append(before: object, name: str) -> str:
    """A list of names with commas, and this one behind it, once."""
    names = [each for each in str(before or "").split(",") if each and each != name]
    return ",".join([*names, name])
