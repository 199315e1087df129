"""The pages about Spark work, block by block, in an empty directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.examples.documents import check_tutorial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.newest
@pytest.mark.parametrize(
    "page", ["tutorials/topic-to-parquet.md", "how-to/topics-in-sql.md", "how-to/several-brokers.md"]
)
def test_a_page_does_and_prints_what_it_says(spark: SparkSession, tmp_path: Path, page: str) -> None:
    check_tutorial(page, tmp_path)
