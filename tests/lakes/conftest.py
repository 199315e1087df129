"""One Spark session with Delta and Iceberg. A Spark that has neither collects none of these tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rmqfast.spark.table_formats import FORMATS

from .spark_lake import SparkLake, formats_of_this_spark, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

collect_ignore: list[str] = []
formats = formats_of_this_spark()
if not formats:
    collect_ignore += ["test_clusters.py", "test_creation.py", "test_ingested.py", "test_kills.py", "test_streams.py"]
if importlib.util.find_spec("deltalake") is None:  # the environments of older PySparks
    collect_ignore += ["test_ingested.py"]
if len(formats) < len(FORMATS) or importlib.util.find_spec("pyspark.pipelines") is None:
    collect_ignore += ["test_page.py"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = start_session(tmp_path_factory.mktemp("lakes"))
    yield session
    session.stop()


@pytest.fixture(params=formats)
def lake(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> SparkLake:
    return SparkLake(spark, tmp_path, request.param)
