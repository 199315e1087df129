"""The code in the documents of Spark, and the README's, runs and prints what stands below it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.examples.documents import check_code
from tests.readme.readers import DOCUMENT, readers_things

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("document", ["spark-live.md", "spark-sink.md"])
def test_the_code_of_the_document_runs_and_prints_what_stands_below_it(spark: SparkSession, document: str) -> None:
    check_code(document)


@pytest.mark.spark
def test_the_block_of_the_readme_runs(spark: SparkSession, tmp_path: Path) -> None:
    with readers_things(tmp_path) as things:
        names = check_code(DOCUMENT, readers=things, chosen=lambda code: "pyspark" in code)
        try:
            assert names["stored"].columns == ["body"]
            assert names["stored"].count() > 0
            assert [tuple(row) for row in names["live"].groupBy("tags").count().collect()] == [("paid", 10)]
            names["query"].processAllAvailable()
        finally:
            names["query"].stop()
        assert spark.read.parquet(str(tmp_path / "live" / "orders")).count() == 10
