"""A page with the tables that it names, and what is typed there that a table should have."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TABLE = re.compile(r"(<!-- table: ([\w-]+) -->\n)(?:.*?\n)??(<!-- end -->)", re.DOTALL)
_FIGURES = re.compile(r"(<!-- figures: ([\w-]+) -->).*?(<!-- end -->)")
#: A rate, a time, memory, a share, a ratio: what a run measures. Sizes of bodies and of logs are no figures.
_FIGURE = re.compile(r"\d[\d.,]*\s?(?:[kMG](?:/s)?\b|[mµn]s\b|seconds\b|MiB\b|%|times\b)")
_COMMAND = re.compile(r"`(?:make|python|cargo) ")


def filled(page: str, tables: Mapping[str, str]) -> str:
    """The page with its tables as the records have them; each table must stand there once."""
    names = [match[2] for match in _TABLE.finditer(page)]
    if sorted(names) != sorted(tables):
        raise ValueError(f"tables of the page: expected {sorted(tables)}, got {sorted(names)}")
    return _TABLE.sub(lambda match: f"{match[1]}\n{tables[match[2]]}\n\n{match[3]}", page)


def with_figures(page: str, sentences: Mapping[str, str]) -> str:
    """The page with what stands inside its lines as the records have it; each sentence must stand there once."""
    names = [match[2] for match in _FIGURES.finditer(page)]
    if sorted(names) != sorted(sentences):
        raise ValueError(f"figures of the page: expected {sorted(sentences)}, got {sorted(names)}")
    return _FIGURES.sub(lambda match: f"{match[1]}{sentences[match[2]]}{match[3]}", page)


def typed_figures(page: str) -> list[str]:
    """Figures outside of tables in paragraphs that name no command."""
    paragraphs = _TABLE.sub("", page).split("\n\n")
    return [figure for text in paragraphs if not _COMMAND.search(text) for figure in _FIGURE.findall(text)]
