"""What `configure` makes of a builder; no session is started."""

from __future__ import annotations

from pyspark.sql import SparkSession

from rmqfast.spark import configure, jar_path


def test_a_session_of_the_users_keeps_its_jars() -> None:
    builder = configure(configure(SparkSession.Builder().config("spark.jars", "/a.jar,/b.jar")))
    assert builder._options["spark.jars"] == f"/a.jar,/b.jar,{jar_path()}"  # noqa: SLF001 - a builder tells its options to nobody
