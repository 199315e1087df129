"""The column `properties` with those that were chosen."""

from __future__ import annotations

from typing import Any

import pytest

from rmqfast import open_store
from rmqfast.errors import ArgumentError
from tests import golden_stores
from tests.golden_stores import NAMES, PathOf
from tests.store.scanned import opened, scanned, table_of


def pairs(path: Any, **wanted: Any) -> list[list[tuple[str, str]]]:
    """The properties of each message, as they are stored."""
    column: list[list[tuple[str, str]]] = table_of(scanned(path, columns=["properties"], **wanted))[0].to_pylist()
    return column


@pytest.mark.parametrize("name", NAMES)
def test_chosen_properties_are_those_that_rocketmq_reads(name: str, golden_store: PathOf) -> None:
    every = [row["properties"] for row in golden_stores.expected_rows(name)]
    names = sorted({each for properties in every for each in properties})
    for chosen in ([names[0]], names[1::2], [*names[::2], "no such property"], ["no such property"]):
        wanted = [{each: value for each, value in row.items() if each in chosen} for row in every]
        assert [dict(row) for row in pairs(golden_store(name), property_names=chosen)] == wanted


def test_they_keep_the_order_of_the_record(golden_store: PathOf) -> None:
    path = golden_store("basic-4.9.4")
    for chosen in (["UNIQ_KEY", "TAGS"], ["TAGS", "UNIQ_KEY"]):
        wanted = [[pair for pair in row if pair[0] in chosen] for row in pairs(path)]
        assert pairs(path, property_names=chosen) == wanted
        assert any(len(row) == 2 for row in wanted)


def test_columns_and_filters_see_all_properties(golden_store: PathOf) -> None:
    with open_store(golden_store("basic-4.9.4")) as store:
        whole: dict[str, Any] = {"columns": ["msg_id", "tags", "keys"], "tags": "TagA", "sql": "UNIQ_KEY IS NOT NULL"}
        wanted = table_of(store.scan("fx_q1", **whole))
        assert table_of(store.scan("fx_q1", property_names=["none"], **whole)) == wanted
        assert wanted.num_rows > 50


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], "property_names: expected at least one name, got none"),
        (["color", ""], "property_names: expected names of properties, got an empty one"),
        ("color", "property_names: expected a sequence, got the one value 'color': write property_names=['color']"),
    ],
)
def test_names_that_choose_nothing_are_refused(golden_store: PathOf, names: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        opened(golden_store("basic-4.9.4")).scan("fx_q1", property_names=names)
    assert str(refused.value) == text
