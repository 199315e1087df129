"""A Spark session of its own for the command line: on this machine, quiet, and reachable from this machine only."""

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

__all__ = ["check_pyspark", "session"]

Settings = dict[str, bool | float | int | str | None]
QUIET = Path(__file__).with_name("log4j2-quiet.properties")
# loopback only: a session of a command must not be open to the network
LOCAL: Settings = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # over Unix sockets, PySpark 4.3's workers print a traceback when Spark stops them after an idle minute; TCP took as
    # much CPU for a task of 16 MiB
    "spark.python.unix.domain.socket.enabled": "false",
}
SETTINGS: Settings = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # so that the same store gives the same text on every machine
    "spark.sql.session.timeZone": "UTC",
}


@contextmanager
def session(name: str, *, master: str = "local[*]") -> Iterator[SparkSession]:
    """A session that ends with the block.

    Args:
        name: Name of the application.
        master: As Spark's `--master`; a local one listens on the loopback address only.

    Raises:
        MissingExtraError: pyspark is not installed.

    Example:
        >>> from rmqfast.spark.local import session
        >>> session("counts").gen.gi_running
        False
    """
    check_pyspark()
    from pyspark.sql import SparkSession

    from rmqfast.spark.session import configure

    _prepare_environment()
    settings = SETTINGS | (LOCAL if master.startswith("local") else {})
    builder = configure(SparkSession.Builder().appName(name).master(master)).config(map=settings)
    spark = builder.getOrCreate()
    # what goes wrong comes back as an exception, which the command shows
    spark.sparkContext.setLogLevel("FATAL")
    # Ctrl-C reaches py4j amid a call; it logs that with a traceback, to the root logger, before it raises it
    logging.disable(logging.CRITICAL)
    try:
        yield spark
    finally:
        logging.disable(logging.NOTSET)
        spark.stop()


def check_pyspark() -> None:
    """Raises MissingExtraError where pyspark is not installed, before work is done that would be for nothing."""
    if find_spec("pyspark") is None:
        raise MissingExtraError("pyspark is needed for this: pip install 'rmqfast[spark]'", name="pyspark")


def _prepare_environment() -> None:
    """Sets environment variables of the JVM and its workers that the user has not set."""
    # Spark warns of a host name that resolves to a loopback address before it reads any setting
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Spark logs before a session exists that could be told not to.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={QUIET.as_uri()}")
