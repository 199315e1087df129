"""A Spark session for the command line. It is local and quiet, and only this machine can reach it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rmqfast.errors import MissingExtraError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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

    from rmqfast.spark.session import configure

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
