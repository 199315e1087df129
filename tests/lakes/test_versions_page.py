"""The page on Delta and Iceberg tables names the releases that `configure` adds."""

from __future__ import annotations

import re

from rmqfast.spark.table_formats import FORMATS
from tests.examples.documents import ROOT

TEXT = (ROOT / "docs/how-to/spark-tables.md").read_text(encoding="utf-8")


def test_the_table_of_versions_is_that_of_the_code() -> None:
    lines = re.search(r"^\| format \| Spark (.+) \|\n\| --- .*\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    assert lines is not None
    sparks = lines[1].replace("Spark ", "").split(" | ")
    shown = {}
    for line in lines[2].splitlines():
        title, *releases = line.strip("| ").split(" | ")
        shown[title] = {spark: release for spark, release in zip(sparks, releases, strict=True) if release[0].isdigit()}
    of_code = {
        support.title: {spark: package.rpartition(":")[2] for spark, package in support.packages.items()}
        for support in FORMATS.values()
    }
    assert shown == of_code


def test_what_the_page_lets_users_type_is_what_the_code_sets() -> None:
    assert {*re.findall(r"\b(?:io\.delta|org\.apache\.iceberg):[\w.:-]+", TEXT)} == {
        support.packages["4.1"] for support in FORMATS.values()
    }
    assert (
        ",".join([*(support.extension for support in FORMATS.values()), "org.rmqfast.spark.RocketMQExtensions"]) in TEXT
    )
    for support in FORMATS.values():
        assert all(f"\n{name} {value}\n" in TEXT for name, value in support.settings.items())
