"""Writes the tables of `docs/comparison.md`: `python -m tests.comparison [--ask] [--write]`, in the project's root.

Without `--ask` no registry is asked: the tables have what `registries.json` keeps. Without `--write` they are printed.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from .claims import read_claims
from .page import PAGE, ask_registries, page_with_tables, read_record, tables


def main() -> None:
    """Asks, prints or writes."""
    parser = argparse.ArgumentParser(prog="python -m tests.comparison")
    parser.add_argument("--ask", action="store_true", help="ask the registries anew, by uv, pip, mvn, npm and go")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    options = parser.parse_args()
    claims = read_claims()
    if options.ask:
        ask_registries(claims, datetime.now(UTC).date().isoformat())
    if options.write:
        page = page_with_tables(PAGE.read_text(encoding="utf-8"), claims, read_record())
        PAGE.write_text(page, encoding="utf-8")
    else:
        sys.stdout.write(tables(claims, read_record()))


if __name__ == "__main__":
    main()
