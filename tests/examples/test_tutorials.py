"""Tutorials and how-to pages work, block by block, in an empty directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from .documents import ROOT, blocks_of, check_tutorial

DOCS = ROOT / "docs"
#: Pages that need a session of their tests, or another Spark; and what runs them.
OF_SPARK = {
    "how-to/spark-tables.md": "tests/lakes/test_page.py",
    "how-to/several-brokers.md": "tests/spark/test_tutorial.py",
    "how-to/topics-in-sql.md": "tests/spark/test_tutorial.py",
    "tutorials/topic-to-parquet.md": "tests/spark/test_tutorial.py",
}
PAGES = sorted(
    name
    for folder in ("tutorials", "how-to")
    for path in (DOCS / folder).glob("*.md")
    if not path.stem.endswith(".zh")  # the same blocks: tests/website/test_translations.py
    and (name := path.relative_to(DOCS).as_posix()) not in OF_SPARK
    and any(blocks_of(name))
)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_and_prints_what_it_says(page: str, tmp_path: Path) -> None:
    check_tutorial(page, tmp_path)


def test_the_pages_are_found() -> None:
    assert {"tutorials/store-and-duckdb.md", "tutorials/what-was-lost.md", "how-to/install.md"} <= {*PAGES}
