"""What `configure` makes of a builder; no session is started."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from rmqfast.errors import ArgumentError
from rmqfast.spark import configure, jar_path
from rmqfast.spark.table_formats import FORMATS, TableFormat

ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize("format_", FORMATS)
def test_a_format_of_tables_brings_the_package_of_this_spark(
    format_: TableFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    for line, package in FORMATS[format_].packages.items():
        monkeypatch.setattr("pyspark.__version__", f"{line}.1")
        given = SparkSession.Builder().config("spark.jars.packages", "a:b:1").config("spark.sql.extensions", "a.B")
        options = configure(configure(given, tables=[format_]), tables=[format_])._options  # noqa: SLF001
        assert options["spark.jars.packages"] == f"a:b:1,{package}"
        assert options["spark.sql.extensions"].split(",")[:2] == ["a.B", FORMATS[format_].extension]
        # the package is built for this Spark and its Scala
        line_of_scala = "2.12" if line == "3.5" else "2.13"
        assert package.split(":")[1].endswith(f"_{line_of_scala}")
        assert line == "3.5" or line in package.split(":")[1]


def test_a_catalog_of_the_users_stays_beside_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    monkeypatch.setattr("pyspark.__version__", "4.1.4")
    key, own = "spark.sql.catalog.spark_catalog", "org.apache.iceberg.spark.SparkSessionCatalog"
    assert configure(SparkSession.Builder(), tables=["delta"])._options[key].endswith("DeltaCatalog")  # noqa: SLF001
    given = SparkSession.Builder().config(key, own)
    assert configure(given, tables=["delta", "iceberg"])._options[key] == own  # noqa: SLF001


@pytest.mark.parametrize(
    ("tables", "version", "said"),
    [
        (
            ["delta"],
            "4.3.0",
            r"expected Spark 3\.5, 4\.0, 4\.1 or 4\.2, for which Delta .* 'rmqfast\[spark-delta\]' .* 4\.2",
        ),
        (["iceberg"], "4.2.1", r"or 4\.1, for which Iceberg has a release, got 4\.2\.1; .*'rmqfast\[spark-iceberg\]'"),
        (["delta", "iceberg"], "4.2.1", "Iceberg has a release, got 4.2.1"),
        (["hudi"], "4.1.4", "expected some of delta, iceberg, got 'hudi'"),
        ("delta", "4.1.4", "expected a list of names, got 'delta'"),
    ],
)
def test_formats_that_this_spark_lacks_are_named(
    tables: list[TableFormat], version: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.__version__", version)
    with pytest.raises(ArgumentError, match=said):
        configure(SparkSession.Builder(), tables=tables)


def test_jars_stand_beside_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.1.4")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars /a.jar --verbose pyspark-shell")
    builder = SparkSession.Builder().config("spark.jars", "/b.jar")
    for _ in range(2):
        builder = configure(builder, tables=["delta"])
    # a builder's jars would replace those of packages
    assert "spark.jars" not in builder._options  # noqa: SLF001
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == f"--jars /a.jar,/b.jar,{jar_path()} --verbose pyspark-shell"


@pytest.mark.parametrize("format_", FORMATS)
def test_an_extra_installs_the_newest_spark_that_has_the_format(format_: TableFormat) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    oldest, *_, newest = FORMATS[format_].packages
    major, minor = newest.split(".")
    assert f"pyspark>={oldest},<{major}.{int(minor) + 1}" in extras[f"spark-{format_}"]
