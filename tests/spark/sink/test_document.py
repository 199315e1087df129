"""The tables in `docs/spark-sink.md` name what there is."""

from __future__ import annotations

import re

from rmqfast._native import SparkOptions, TopicSink
from tests.examples.documents import ROOT

TEXT = (ROOT / "docs" / "spark-sink.md").read_text(encoding="utf-8")


def rows_of(section: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = TEXT.split(f"## {section}\n")[1].split("\n## ")[0].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return table[2:]


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
    types = dict(TopicSink.column_types())
    assert set(listed) == set(types)
    for name, kinds in listed.items():
        expected = ", ".join(types[name])
        assert kinds in {expected, "int, ..."}, name


def test_the_table_of_options_is_that_of_the_sink() -> None:
    attributes, options = (re.findall(r"`(\w+)`", " ".join(row[at] for row in rows_of("Options"))) for at in (0, 1))
    assert sorted(options) == sorted(SparkOptions.names("sink"))
    assert sorted(zip(options, attributes, strict=True)) == sorted(SparkOptions.arguments("sink"))
