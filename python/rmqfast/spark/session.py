"""Settings of a Spark session for reading a store."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rmqfast.errors import ArgumentError, MissingExtraError
from rmqfast.spark.columnar import jar_path
from rmqfast.spark.table_formats import TableFormat, session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_PACKAGE = "org.apache.spark.sql.execution.streaming"
_EXTENSIONS = "spark.sql.extensions"
_PACKAGES = "spark.jars.packages"
_LISTS = (_PACKAGES, _EXTENSIONS)
_SUBMIT = "PYSPARK_SUBMIT_ARGS"
_ROWS = "org.rmqfast.spark.RocketMQExtensions"


def configure(
    builder: SparkSession.Builder, *, tables: Sequence[TableFormat] = (), local_checkpoints: bool = False
) -> SparkSession.Builder:
    """Returns a builder with options that make reads fast, and that let workers find this package.

    The jar of the data source `rocketmq-columnar` is added to the builder's `spark.jars`; beside packages, to
    `PYSPARK_SUBMIT_ARGS`, as PySpark would lose the packages' jars. From PySpark 4.0 on, an
    extension is added to `spark.sql.extensions`: if a query needs rows of all columns, Rust creates them.

    Workers run this Python unless `PYSPARK_PYTHON` is set. From PySpark 4.1 on, they talk to the JVM over Unix sockets,
    and the data source's option `pushdown` works; older versions ignore these settings.

    Where spark-submit starts the program, the JVM runs already: give it the jars and packages by `--jars` and
    `--packages`.

    A client of Spark Connect cannot set these options, so its builder is returned unchanged; set them on the server.

    Args:
        builder: A `SparkSession.builder`.
        tables: Formats of tables that the session reads and writes: `delta`, `iceberg`. Spark downloads their packages
            from Maven Central. With `delta`, the session catalog is Delta's, unless the builder has set another.
        local_checkpoints: Whether the checkpoints of all streams lie on a local file system. This makes batches faster.
            Not for HDFS, where Spark's usual file manager keeps two runs of a query apart.

    Raises:
        ArgumentError: A format has no release for this Spark, or spark-submit has started the JVM without its package.

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
    import pyspark

    builder = _with_tables(builder, tables, pyspark.__version__)
    jar = jar_path()
    if _is_submitted():
        # the JVM has the jars of spark-submit, and a builder's would replace them
        jar = jar if jar is not None and jar.name in _submitted("spark.jars") else None
    elif jar is not None:
        builder = _with_jar(builder, str(jar))
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


def _with_jar(builder: SparkSession.Builder, jar: str) -> SparkSession.Builder:
    """Adds a jar to those of the builder and of its packages.

    A builder's `spark.jars` replaces the jars that Spark has downloaded for packages, so that executors lack them.
    """
    options = getattr(builder, "_options", {})
    if not options.get(_PACKAGES):
        return builder.config("spark.jars", _append(options.get("spark.jars"), jar))
    words = shlex.split(os.environ.get(_SUBMIT, "pyspark-shell"))
    given = ""
    if "--jars" in words:
        at = words.index("--jars")
        given = words[at + 1]
        del words[at : at + 2]
    jars = _append(given, *str(options.pop("spark.jars", "")).split(","), jar)
    # PySpark passes these to spark-submit, which starts the JVM
    os.environ[_SUBMIT] = shlex.join(["--jars", jars, *words])
    return builder


def _is_submitted() -> bool:
    """Returns whether spark-submit has started this Python, and the JVM before it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _submitted(key: str) -> str:
    """Returns a setting that spark-submit has made."""
    from pyspark import SparkConf, SparkContext

    # connects to the JVM, whose settings a SparkConf has from then on
    SparkContext._ensure_initialized()  # noqa: SLF001
    return SparkConf().get(key, "") or ""


def _with_tables(builder: SparkSession.Builder, names: Sequence[TableFormat], version: str) -> SparkSession.Builder:
    if not names:
        return builder
    options = getattr(builder, "_options", {})
    settings = session_settings(names, version)
    if _is_submitted():
        packages = settings.pop(_PACKAGES)
        jars = _submitted("spark.jars")
        # in any version; a file's name also has the group, or not
        if not all(f"{package.split(':')[1]}-" in jars for package in packages.split(",")):
            raise ArgumentError(
                "tables: spark-submit has started the JVM, which loads packages as it starts: "
                f"give --packages {packages} to spark-submit"
            )
    for key, value in settings.items():
        if key in _LISTS:
            builder = builder.config(key, _append(options.get(key), *value.split(",")))
        elif key not in options:
            builder = builder.config(key, value)
    return builder


def _append(before: object, *names: str) -> str:
    """Returns a comma-separated list with names appended. Those that it has already move to its end."""
    kept = [each for each in str(before or "").split(",") if each and each not in names]
    return ",".join([*kept, *filter(None, names)])


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
