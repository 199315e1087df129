"""One Spark session for all these tests; files that need a newer PySpark are not collected with an older one."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

import rmqfast.spark
from tests import golden_stores
from tests.golden_stores import Line, PathOf

from .cluster import ALONE, Settings
from .conditions import PARTLY, WHOLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rmqfast.spark import RocketMQDataSource


def has_filters() -> bool:
    """Whether this PySpark pushes filters down to sources."""
    if importlib.util.find_spec("pyspark.sql.datasource") is None:
        return False
    from pyspark.sql import datasource

    return hasattr(datasource, "EqualTo")


collect_ignore: list[str] = []
if importlib.util.find_spec("pyspark.sql.datasource") is None:
    collect_ignore += [
        "test_both_sources.py",
        "test_data_source.py",
        "test_documents.py",
        "test_pushdown.py",
        "test_source_errors.py",
    ]
elif not has_filters():
    collect_ignore += ["test_pushdown.py"]
if importlib.util.find_spec("typer") is None:  # the environments of older PySparks are without the command line
    collect_ignore += ["test_ingest.py"]

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# Stores differ by RocketMQ's version, not by PySpark's: one that is large, one of 5.x, one that has damage.
FEW_STORES = {"basic-4.9.4", "delaytx-5.3.3", "damaged-4.9.4"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what older PySparks leave out: the other stores."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            name = item.callspec.params.get("name")
            if name in golden_stores.NAMES and name not in FEW_STORES:
                item.add_marker(pytest.mark.newest)


Rows = Callable[["DataFrame"], list[Line]]
Matching = Callable[[str], list[int]]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two cores, as `rmqfast.spark.configure` wants it."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = rmqfast.spark.configure(SparkSession.builder.master("local[2]"))
    settings: Settings = {
        # a session lives for a minute: what the optimizing compiler and parallel collectors do is never earned back
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    session = builder.config(map=ALONE | settings).getOrCreate()
    session.sparkContext.setLogLevel("FATAL")
    if "test_data_source.py" not in collect_ignore:
        source: type[RocketMQDataSource] = rmqfast.spark.RocketMQDataSource
        session.dataSource.register(source)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def python_path(spark: SparkSession, golden_store: PathOf) -> Iterator[DataFrame]:
    """The rows of basic-4.9.4 by way of Python workers: kept, as many tests compare with them."""
    frame = rmqfast.spark.read_store(spark, golden_store("basic-4.9.4"), None, engine="arrow", broker_name="broker-a")
    yield frame.cache()
    frame.unpersist()


@pytest.fixture(scope="session")
def matching(python_path: DataFrame) -> Matching:
    """The physical offsets of the rows that Spark itself finds for one of `conditions`, all by one job."""
    conditions = (*WHOLE, *PARTLY)
    found = python_path.selectExpr("physical_offset", *(f"({c}) AS c{n}" for n, c in enumerate(conditions))).collect()
    by_condition = {c: sorted(row[0] for row in found if row[n]) for n, c in enumerate(conditions, 1)}
    return by_condition.__getitem__


def plan(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    """The text of a physical plan."""
    capsys.readouterr()
    frame.explain()
    return capsys.readouterr().out


@pytest.fixture
def rows_of() -> Rows:
    """Rows of a data frame as those of `golden_stores`: timestamps in milliseconds, in physical order."""
    return _rows_of


def _rows_of(frame: DataFrame) -> list[Line]:
    from pyspark.sql import functions as f

    for name in ("born_timestamp", "store_timestamp"):
        if name in frame.columns:
            frame = frame.withColumn(name, f.expr(f"unix_millis({name})"))
    rows: list[dict[str, Any]] = [row.asDict() for row in frame.collect()]
    return sorted(rows, key=lambda row: row.get("physical_offset", 0))
