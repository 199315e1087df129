"""The comparison with other clients: claims about rmqfast can be imported, claims about others link to a source."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from pydoc import locate

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")
#: The first rows are what package registries answered.
FIRST_CLAIM = {"protocol", "licence"}
SOURCE = re.compile(
    r"not checked|\[.+\]\(https://github\.com/[\w.-]+/[\w.-]+/blob/[0-9a-f]{40}/\S*\)|.+ \(the wheel of [\w-]+ [\d.]+\)"
)


def claims() -> Iterator[tuple[str, str, str]]:
    """Row, client and cell."""
    for section in TEXT.split("\n## ")[1:]:
        clients, _, *rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
        first = next(number for number, (row, *_) in enumerate(rows) if row in FIRST_CLAIM)
        for row, *cells in rows[first:]:
            yield from ((row, client, cell) for client, cell in zip(clients[1:], cells, strict=True))


@pytest.mark.parametrize(("row", "client", "cell"), [*claims()])
def test_a_claim_has_its_proof(row: str, client: str, cell: str) -> None:
    if client == "rmqfast":
        names = re.findall(r"`([\w.]+)`", cell.rpartition(" (")[2])
        assert names
        assert [name for name in names if not is_there(name)] == [], row
    else:
        assert SOURCE.fullmatch(cell)


def is_there(name: str) -> bool:
    return locate(name if name.startswith("rmqfast.") else f"rmqfast.{name}") is not None


def test_a_name_that_is_not_there_and_a_source_that_moves_are_found() -> None:
    assert not is_there("Producer.does_not_exist")
    assert not SOURCE.fullmatch("[yes](https://github.com/apache/rocketmq/blob/develop/README.md)")


def test_the_version_of_ours_is_that_of_the_crates() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    (newest, *_) = re.findall(r"^\| newest version \| (\S+) \|", TEXT, re.MULTILINE)
    assert newest == version
