"""Settings of a Spark session that reading a store wants."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rmqfast.spark.columnar import jar_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["configure"]


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Sets what makes reads fast and workers find this package, before a session starts.

    The jar of the data source `rocketmq-columnar` joins those of `spark.jars` that the builder has by then.

    Workers run this Python unless `PYSPARK_PYTHON` says otherwise. From PySpark 4.1 on they talk to the JVM by Unix
    sockets, and the data source's option `pushdown` works; older ones do not know these settings and leave them alone.

    Args:
        builder: As `SparkSession.builder`.

    Returns:
        The builder.

    Example:
        >>> from pyspark.sql import SparkSession
        >>> builder = configure(SparkSession.builder.master("local[2]"))

    Source: `docs/spark.md`.
    """
    # workers must find this package, and another Python may not have it
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jar = jar_path()
    if jar is not None:
        # a builder tells its options nowhere else, and `spark.jars` must not replace the user's
        before = str(getattr(builder, "_options", {}).get("spark.jars", ""))
        jars = [name for name in before.split(",") if name and name != str(jar)]
        builder = builder.config("spark.jars", ",".join([*jars, str(jar)]))
    return builder.config("spark.python.unix.domain.socket.enabled", "true").config(
        "spark.sql.python.filterPushdown.enabled", "true"
    )
