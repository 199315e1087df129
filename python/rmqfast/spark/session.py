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


def configure(builder: SparkSession.Builder, *, local_checkpoints: bool = False) -> SparkSession.Builder:
    """Sets what makes reads fast and workers find this package, before a session starts.

    The jar of the data source `rocketmq-columnar` joins those of `spark.jars` that the builder has by then.

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

    Source: `docs/spark.md`.
    """
    options = getattr(builder, "_options", {})
    if str(options.get("spark.remote", "")).startswith("sc://"):
        return builder
    # workers must find this package, and another Python may not have it
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jar = jar_path()
    if jar is not None:
        # a builder tells its options nowhere else, and `spark.jars` must not replace the user's
        before = str(options.get("spark.jars", ""))
        jars = [name for name in before.split(",") if name and name != str(jar)]
        builder = builder.config("spark.jars", ",".join([*jars, str(jar)]))
    if local_checkpoints:
        import pyspark

        # Spark moved it in 4.1
        moved = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1)
        package = f"{_PACKAGE}.checkpointing" if moved else _PACKAGE
        builder = builder.config(_MANAGER, f"{package}.FileSystemBasedCheckpointFileManager")
    return builder.config("spark.python.unix.domain.socket.enabled", "true").config(
        "spark.sql.python.filterPushdown.enabled", "true"
    )
