"""What `configure` makes of a builder; no session is started."""

from __future__ import annotations

import pyspark
import pytest
from pyspark.sql import SparkSession

from rmqfast.spark import configure, jar_path


def test_a_session_of_the_users_keeps_its_jars_and_extensions() -> None:
    given = SparkSession.Builder().config("spark.jars", "/a.jar,/b.jar").config("spark.sql.extensions", "a.B")
    builder = configure(configure(given))
    options = builder._options  # noqa: SLF001 - a builder tells its options to nobody
    assert options["spark.jars"] == f"/a.jar,/b.jar,{jar_path()}"
    ours = ",org.rmqfast.spark.RocketMQExtensions" if pyspark.__version__ >= "4.0" else ""
    assert options["spark.sql.extensions"] == f"a.B{ours}"


def test_a_client_of_spark_connect_is_left_alone() -> None:
    builder = SparkSession.Builder().remote("sc://127.0.0.1:1")
    before = dict(builder._options)  # noqa: SLF001
    assert configure(builder, local_checkpoints=True)._options == before  # noqa: SLF001


@pytest.mark.spark
def test_local_checkpoints_have_a_manager_that_this_spark_has(spark: SparkSession) -> None:
    builder = configure(SparkSession.Builder(), local_checkpoints=True)
    manager = builder._options["spark.sql.streaming.checkpointFileManagerClass"]  # noqa: SLF001
    assert spark._jvm.java.lang.Class.forName(manager).getName() == manager  # type: ignore[union-attr]  # noqa: SLF001
