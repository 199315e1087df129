"""The code in `docs/spark-live.md` runs and prints what stands below it; options and errors are those of the code."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING, Any

import pytest

from rmqfast import errors
from rmqfast.spark.live.options import LIVE_OPTION_NAMES
from tests.examples.documents import ROOT, blocks_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = (ROOT / "docs" / "spark-live.md").read_text(encoding="utf-8")


@pytest.mark.spark
@pytest.mark.long
def test_the_code_of_the_document_runs_and_prints_what_stands_below_it(spark: SparkSession) -> None:
    names: dict[str, Any] = {"__name__": "spark-live.md"}
    try:
        for block in blocks_of("spark-live.md"):
            printed = io.StringIO()
            code = compile("\n" * (block.line - 1) + block.code, "docs/spark-live.md", "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, names)  # noqa: S102 - that is what is tested
            assert printed.getvalue() == block.printed, f"docs/spark-live.md:{block.line}"
    finally:
        if "cluster" in names:
            names["cluster"].stop()


def test_the_options_of_the_document_are_those_of_the_code() -> None:
    section = TEXT.split("## Options")[1].split("## Errors")[0]
    cells = [re.split(r"(?<!\\)\|", line) for line in section.splitlines() if line.startswith("| ")]
    found = {name for row in cells[2:] for name in re.findall(r"`(\w+)`", row[2])}
    assert found == set(LIVE_OPTION_NAMES)


def test_the_errors_of_the_document_are_raised_with_these_words() -> None:
    rows = re.findall(r"^\| (`.*?`) \| (.*?) \| .+ \|$", TEXT.split("## Errors")[1], re.MULTILINE)
    assert len(rows) > 10
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "python" / "rmqfast").rglob("*.py"))
    joined = re.sub(r'"\s*\n\s*f?"', "", sources)
    for words, kind in rows:
        for part in re.findall(r"`(.+?)`", words):
            assert part in joined, part
        for name in re.findall(r"`(\w+Error)`", kind):
            assert issubclass(getattr(errors, name), errors.RmqError)
