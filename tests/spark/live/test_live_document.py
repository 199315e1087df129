"""The options and errors in `docs/spark-live.md` are those of the code, and the example of `read_topic` runs."""

from __future__ import annotations

import doctest
import re

import pytest

from rmqfast._native import SparkOptions
from rmqfast.spark.live import reader
from tests.examples.documents import ROOT, check_errors


def test_the_options_of_the_document_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "spark-live.md").read_text(encoding="utf-8")
    section = text.split("## Options")[1].split("## Errors")[0]
    cells = [re.split(r"(?<!\\)\|", line) for line in section.splitlines() if line.startswith("| ")]
    found = {name for row in cells[2:] for name in re.findall(r"`(\w+)`", row[2])}
    assert found == set(SparkOptions.names("topic batch"))


def test_the_errors_of_the_document_are_raised_with_these_words() -> None:
    check_errors("spark-live.md")


@pytest.mark.spark
def test_the_example_of_read_topic_runs(request: pytest.FixtureRequest) -> None:
    result = doctest.testmod(reader, extraglobs={"getfixture": request.getfixturevalue})
    assert result.failed == 0
    assert result.attempted
