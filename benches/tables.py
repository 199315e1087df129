"""Writes tables, pictures and figures of `docs/benchmarks.md`, `docs/images` and the READMEs, from the newest records.

python benches/tables.py
python benches/tables.py --check        # writes nothing; 1 where something is not as the records have it
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import images
import pages
from machine import ROOT
from pages import clusters, stores, topics
from pages.table import Grid, Table

#: A record that is older is told of: the code may be faster or slower since.
MOST_COMMITS = 300
READMES = {"en": ROOT / "README.md", "zh": ROOT / "README.zh.md"}
PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images"
TABLES: dict[str, Table | Grid] = {
    "spark-store": stores.COLUMNAR,
    "spark-kafka": stores.KAFKA,
    "scans": stores.SCANS,
    "queries": stores.QUERIES,
    "ingests": stores.INGESTS,
    "appends": stores.APPENDS,
    "broker": clusters.BROKER,
    "clients": clusters.CLIENTS,
    "spark-topics": topics.BATCHES,
    "spark-log": topics.LOG,
    "spark-streams": topics.STREAMS,
    "spark-real-time": topics.REAL_TIME,
    "spark-sinks": topics.SINKS,
    "spark-endurance": topics.ENDURANCE,
    "spark-earlier": topics.EARLIER,
    "mirror": clusters.MIRROR,
    "ledger": clusters.LEDGER,
    "operate": clusters.OPERATE,
    "slaves": clusters.SLAVES,
}


def main() -> int:
    """Writes, or looks what would be written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page with the tables")
    options = parser.parse_args()
    page = options.page.read_text(encoding="utf-8")
    problems = [f"{options.page}: typed and not from a record: {one}" for one in pages.typed_figures(page)]
    pictures = {IMAGES / name: picture for name, picture in images.drawn().items()}
    readmes = {
        path: pages.with_figures(path.read_text(encoding="utf-8"), {"speed": images.in_words(language)})
        for language, path in READMES.items()
    }
    for path, text in {options.page: tables_in(page), **readmes, **pictures}.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            if options.check:
                problems.append(f"{path}: not as it is made: make tables")
            else:
                path.write_text(text, encoding="utf-8")
    print("\n".join(problems), file=sys.stderr, end="\n" * bool(problems))
    print(*old_records(), sep="\n")
    return 1 if problems else 0


def old_records() -> list[str]:
    """A line for each table with a record that is more than 300 commits old."""
    lines = []
    for name, table in TABLES.items():
        for record in sorted(table.records, key=lambda record: record.name):
            age = record.age()
            if age is not None and age > MOST_COMMITS:
                lines.append(
                    f"table {name}: its record {record.name} is {age} commits old: measure it again, make bench"
                )
    return lines


def tables_in(page: str) -> str:
    """The page with its tables as the records have them."""
    return pages.filled(page, {name: table.text for name, table in TABLES.items()})


if __name__ == "__main__":
    sys.exit(main())
