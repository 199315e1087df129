"""The tutorial about Spark works, block by block, in an empty directory."""

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
def test_the_tutorial_does_and_prints_what_it_says(spark: SparkSession, tmp_path: Path) -> None:
    check_tutorial("tutorials/topic-to-parquet.md", tmp_path)
