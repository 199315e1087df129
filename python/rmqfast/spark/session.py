"""Settings of a Spark session for reading a store."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rmqfast.errors import MissingExtraError
from rmqfast.spark.columnar import jar_path
from rmqfast.spark.table_formats import TableFormat, session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming"
_EXTENSIONS = "spark.sql.extensions"
_LISTS = ("spark.jars.packages", _EXTENSIONS)
_ROWS = "org.rmqfast.spark.RocketMQExtensions"


def configure(
    builder: SparkSession.Builder, *, tables: Sequence[TableFormat] = (), local_checkpoints: bool = False
) -> SparkSession.Builder:
    """Returns a builder with options that make reads fast, and that let workers find this package.

    The jar of the data source `rocketmq-columnar` is added to the builder's `spark.jars`. From PySpark 4.0 on, an
    extension is added to `spark.sql.extensions`: if a query needs rows of all columns, Rust creates them.

    Workers run this Python unless `PYSPARK_PYTHON` is set. From PySpark 4.1 on, they talk to the JVM over Unix sockets,
    and the data source's option `pushdown` works; older versions ignore these settings.

    A client of Spark Connect cannot set these options, so its builder is returned unchanged; set them on the server.

    Args:
        builder: A `SparkSession.builder`.
        tables: Formats of tables that the session reads and writes: `delta`, `iceberg`. Spark downloads their packages
            from Maven Central. With `delta`, the session catalog is Delta's, unless the builder has set another.
        local_checkpoints: Whether the checkpoints of all streams lie on a local file system. This makes batches faster.
            Not for HDFS, where Spark's usual file manager keeps two runs of a query apart.

    Raises:
        ArgumentError: A format has no release for this Spark.

    Example:
        >>> from pyspark.sql import SparkSession
        >>> builder = configure(SparkSession.builder.master("local[2]"))
    """
    # The builder offers no other way to read its options, and the user's settings must survive.
    options = getattr(builder, "_options", {})
    if str(options.get("spark.remote", "")).startswith("sc://"):
        return builder
    # Workers must find this package, which another Python may lack.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jar = jar_path()
    if jar is not None:
        builder = builder.config("spark.jars", _append(options.get("spark.jars"), str(jar)))
    import pyspark

    builder = _with_tables(builder, tables, pyspark.__version__)
    version = tuple(map(int, pyspark.__version__.split(".")[:2]))
    # The extension is compiled against the Scala version of Spark 4.
    if jar is not None and version >= (4, 0):
        builder = builder.config(_EXTENSIONS, _append(options.get(_EXTENSIONS), _ROWS))
    if local_checkpoints:
        # Spark moved the class in 4.1.
        package = f"{_PACKAGE}.checkpointing" if version >= (4, 1) else _PACKAGE
        builder = builder.config(_MANAGER, f"{package}.FileSystemBasedCheckpointFileManager")
    return builder.config("spark.python.unix.domain.socket.enabled", "true").config(
        "spark.sql.python.filterPushdown.enabled", "true"
    )


def _with_tables(builder: SparkSession.Builder, names: Sequence[TableFormat], version: str) -> SparkSession.Builder:
    if not names:
        return builder
    options = getattr(builder, "_options", {})
    for key, value in session_settings(names, version).items():
        if key in _LISTS:
            builder = builder.config(key, _append(options.get(key), *value.split(",")))
        elif key not in options:
            builder = builder.config(key, value)
    return builder


def _append(before: object, *names: str) -> str:
    """Returns a comma-separated list with names appended. Those that it has already move to its end."""
    kept = [each for each in str(before or "").split(",") if each and each not in names]
    return ",".join([*kept, *names])


Settings = dict[str, bool | float | int | str | None]
QUIET = Path(__file__).with_name("log4j2-quiet.properties")
# Loopback only, since the session of a command must not be open to the network.
LOCAL: Settings = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # With Unix sockets, PySpark 4.3's workers print a traceback when Spark stops them after an idle minute. TCP took as
    # much CPU for a task of 16 MiB.
    "spark.python.unix.domain.socket.enabled": "false",
}
SETTINGS: Settings = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # With UTC, the same store gives the same output on every machine.
    "spark.sql.session.timeZone": "UTC",
}


@contextmanager
def session(name: str, *, master: str = "local[*]") -> Iterator[SparkSession]:
    """Starts a session that ends with the block. Raises `MissingExtraError` if pyspark is not installed.

    `master` is Spark's `--master`; a local one listens only on the loopback address.
    """
    check_pyspark()
    from pyspark.sql import SparkSession

    _prepare_environment()
    settings = SETTINGS | (LOCAL if master.startswith("local") else {})
    builder = configure(SparkSession.Builder().appName(name).master(master)).config(map=settings)
    spark = builder.getOrCreate()
    # Errors come back as exceptions, which the command shows.
    spark.sparkContext.setLogLevel("FATAL")
    # Ctrl-C during a py4j call: py4j logs a traceback to the root logger before it raises.
    logging.disable(logging.CRITICAL)
    try:
        yield spark
    finally:
        logging.disable(logging.NOTSET)
        spark.stop()


def check_pyspark() -> None:
    """Raises `MissingExtraError` if pyspark is not installed. Called before other work is done."""
    if find_spec("pyspark") is None:
        raise MissingExtraError("pyspark is needed for this: pip install 'rmqfast[spark]'", name="pyspark")


def _prepare_environment() -> None:
    """Sets the environment variables of the JVM and its workers. Variables that the user has set stay."""
    # Spark warns about a host name that resolves to a loopback address before it reads any setting.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Spark logs before there is a session whose log level can be set.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={QUIET.as_uri()}")
