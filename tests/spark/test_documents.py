"""The code in the documents of Spark runs and prints what stands below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.examples.documents import check_code

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("document", ["spark-live.md", "spark-sink.md"])
def test_the_code_of_the_document_runs_and_prints_what_stands_below_it(spark: SparkSession, document: str) -> None:
    check_code(document)
