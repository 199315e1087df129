"""Writes what of the documents is made of the code, or of other documents: `python -m website`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from website import command_pages, names_page, option_tables
from website.pictures.examples import PICTURES

DOCS = Path(__file__).parents[1] / "docs"


def _picture(name: str) -> str:
    """The picture of an example, from the output that its page shows."""
    page = (DOCS / "examples.md").read_text(encoding="utf-8")
    output = page.partition(f"`examples/{name}.py`")[2].partition("```text\n")[2].partition("```")[0]
    return PICTURES[name](re.sub(r"\A\n", "", output))


#: Files below `docs/`, and what makes them.
FILES: dict[str, Callable[[], str]] = {
    "reference/rmqfast.md": names_page.all_names,
    "reference/options.md": option_tables.of_classes,
    "reference/options-spark.md": option_tables.of_spark,
    "reference/commands.md": command_pages.all_commands,
    **{f"images/example-{name.replace('_', '-')}.svg": partial(_picture, name) for name in PICTURES},
}

if __name__ == "__main__":
    for file, made in FILES.items():
        (DOCS / file).write_text(made(), encoding="utf-8")
