"""The texts in `docs/troubleshooting.md` are those of the code, or of those who are named here."""

from __future__ import annotations

import re

import pytest

from tests.examples.documents import ROOT, sources

TEXTS = re.findall(r"^### `(.+)`$", (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE)
#: Others say them: pip, the loader, the shell, the JVM, the operating system, Spark, Python.
OF_OTHERS = {
    "is not a supported wheel on this platform",
    "not found (required by",
    "Bus error",
    "UnsupportedClassVersionError",
    "Address already in use",
    "Failed to find the data source: rocketmq",
    "No module named 'rmqfast'",
    "rocketmq-columnar is not a valid Spark SQL Data Source",
}


def test_there_are_the_texts_that_users_see_most() -> None:
    assert len(TEXTS) >= 30
    assert set(TEXTS) >= OF_OTHERS


@pytest.mark.parametrize("text", sorted({*TEXTS} - OF_OTHERS))
def test_a_text_stands_in_the_code(text: str) -> None:
    assert text in sources()
