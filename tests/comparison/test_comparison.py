"""What the page of comparison claims: of us what can be imported, of others what has a source, and nothing else."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from typing import Any

import pytest

from .claims import Client, Fact, read_claims
from .page import NOT_CHECKED, PAGE, page_with_tables, read_record, tables
from .registries import Release

CLAIMS = read_claims()
RECORD = read_record()
FACTS = [
    pytest.param(client, fact, id=f"{client.group}-{client.name}-{row}")
    for client in CLAIMS.clients
    for row, fact in client.facts.items()
]
A_SOURCE = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/blob/[0-9a-f]{40}/\S*|the wheel of [\w-]+ [\d.]+")


def imported(name: str) -> Any:
    """The thing behind `module:Name.attribute`."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for attribute in path.split("."):
        found = getattr(found, attribute)
    return found


@pytest.mark.parametrize(("client", "fact"), FACTS)
def test_a_cell_of_ours_names_what_can_be_imported_and_one_of_others_has_a_source(client: Client, fact: Fact) -> None:
    if client.ours:
        assert fact.names
        assert not fact.source
        assert all(imported(name) is not None for name in fact.names)
    else:
        assert not fact.names
        assert A_SOURCE.fullmatch(fact.source)


@pytest.mark.parametrize("client", CLAIMS.clients, ids=lambda client: f"{client.group}-{client.name}")
def test_a_fact_stands_in_a_row_of_its_table(client: Client) -> None:
    assert set(client.facts) <= set(CLAIMS.rows[client.group])


def test_each_package_that_a_registry_is_asked_for_has_an_answer_in_the_record() -> None:
    asked = {client.key for client in CLAIMS.clients if client.registry and not client.ours}
    assert set(RECORD[1]) == asked


def test_the_page_is_the_one_that_claims_and_record_give() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page_with_tables(text, CLAIMS, RECORD) == text


def test_the_page_says_when_registries_were_asked_and_sources_were_read() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"Registries were asked on {RECORD[0]}. Sources of the other cells were read on {CLAIMS.checked}." in text


def test_what_nobody_looked_at_and_what_no_registry_told_is_not_checked() -> None:
    silent = Client("silent", "spark", registry="pypi", package="silent")
    claims = replace(CLAIMS, clients=(silent,))
    (_, spark) = tables(claims, ("2026-01-01", {silent.key: Release()})).split("## Spark connectors")
    cells = [line.split(" | ")[1].strip(" |") for line in spark.strip().splitlines()[2:]]
    assert cells == ["`silent` of PyPI"] + [NOT_CHECKED] * (len(cells) - 1)


def test_what_is_not_there_is_found() -> None:
    with pytest.raises(AttributeError):
        imported("rmqfast:Producer.does_not_exist")
    assert not A_SOURCE.fullmatch("https://github.com/apache/rocketmq/blob/develop/README.md")
