"""The code in `docs/spark-sink.md` runs and prints what stands below it; the tables name what there is."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from rmqfast.spark.sink.columns import SINK_COLUMNS
from rmqfast.spark.sink.options import SINK_OPTION_NAMES, SinkOptions
from tests.examples.documents import ROOT, blocks_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = (ROOT / "docs" / "spark-sink.md").read_text(encoding="utf-8")


def rows_of(section: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = TEXT.split(f"## {section}\n")[1].split("\n## ")[0].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return table[2:]


@pytest.mark.spark
@pytest.mark.long
def test_the_code_of_the_document_runs_and_prints_what_stands_below_it(spark: SparkSession) -> None:
    names: dict[str, Any] = {"__name__": "spark-sink.md"}
    try:
        for block in blocks_of("spark-sink.md"):
            printed = io.StringIO()
            # the line numbers of a traceback are those of the document
            code = compile("\n" * (block.line - 1) + block.code, "docs/spark-sink.md", "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, names)  # noqa: S102 - that is what is tested
            assert printed.getvalue() == block.printed, f"docs/spark-sink.md:{block.line}"
    finally:
        if "cluster" in names:
            names["cluster"].stop()


def test_the_table_of_columns_is_that_of_the_sink() -> None:
    listed = {row[0].strip("`"): row[1] for row in rows_of("Columns")}
    assert list(listed) == [
        "body",
        "tags",
        "keys",
        "properties",
        "queue_id",
        "broker_name",
        "delay_level",
        "flag",
        "topic",
    ]
    assert set(listed) == set(SINK_COLUMNS)
    for name, kinds in listed.items():
        expected = ", ".join(SINK_COLUMNS[name])
        assert kinds in {expected, "int, ..."}, name


def test_the_table_of_options_is_that_of_the_sink() -> None:
    attributes, options = (re.findall(r"`(\w+)`", " ".join(row[at] for row in rows_of("Options"))) for at in (0, 1))
    assert sorted(options) == sorted(SINK_OPTION_NAMES)
    assert sorted(attributes) == sorted(field.name for field in fields(SinkOptions))
