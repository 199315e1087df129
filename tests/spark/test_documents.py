"""The code in the documents of Spark, and the README's, runs and prints what stands below it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.examples.documents import ROOT, blocks_of, check_code, with_readers
from tests.examples.terminal import Terminal
from tests.readme.readers import DOCUMENT, readers_things

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.newest
@pytest.mark.parametrize("document", ["spark-live.md", "spark-sink.md"])
def test_the_code_of_the_document_runs_and_prints_what_stands_below_it(spark: SparkSession, document: str) -> None:
    check_code(document)


@pytest.mark.spark
@pytest.mark.newest
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


@pytest.mark.spark
@pytest.mark.newest
def test_the_block_of_the_home_page_runs(spark: SparkSession, tmp_path: Path) -> None:
    with readers_things(tmp_path) as things:
        names = check_code("index.md", readers=things, chosen=lambda code: "pyspark" in code)
        assert names["orders"].count() == 10


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.newest
def test_the_blocks_of_the_page_on_stores_run(spark: SparkSession, tmp_path: Path) -> None:
    with readers_things(tmp_path) as things:
        names = check_code("spark.md", readers=things)
        assert spark.read.parquet(str(tmp_path / "lake/orders")).columns[-1] == "body"
        assert names["orders"].count() > 0
        (block,) = re.findall(r"^```sql\n(.*?)```", page("spark.md"), re.DOTALL | re.MULTILINE)
        *_, counts = [spark.sql(text) for text in with_readers(block, things).split(";") if text.strip()]
        assert sum(row[1] for row in counts.collect()) == names["orders"].count()


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.newest
def test_the_command_that_submits_a_job_runs_it(tmp_path: Path) -> None:
    (command,) = (block.code for block in blocks_of("spark.md") if "spark-submit" in block.code)
    with readers_things(tmp_path) as things, Terminal(tmp_path) as terminal:
        (tmp_path / "job.py").write_text(
            "from pyspark.sql import SparkSession\n"
            "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
            "orders = spark.read.format('rocketmq-columnar').option('topic', 'orders')"
            f".load('{things['/data/rocketmq/store']}')\n"
            "print('rows', orders.where('length(body) > 0').count())\n"
        )
        printed = terminal.run(command)
    assert re.search(r"^rows [1-9]\d*$", printed, re.MULTILINE), printed


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")
