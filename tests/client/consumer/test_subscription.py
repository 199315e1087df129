"""Subscriptions as they are written: tags as 4.9.4 reads them, and expressions of other types."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from rmqfast.client.consumer import MessageSelector, build_subscription_data
from rmqfast.errors import ExpressionError

GOLDEN = Path(__file__).parents[2] / "golden" / "tags-4.9.4.jsonl"
ROWS = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("row", [row for row in ROWS if "error" not in row], ids=lambda row: repr(row["tags"]))
def test_tags_and_their_codes_are_those_of_4_9_4(row: dict[str, Any]) -> None:
    found = build_subscription_data("t", row["tags"], now=7)
    assert found.sub_string == ("*" if row["all"] else row["tags"])
    assert sorted(found.tags_set) == sorted(row["set"])
    assert sorted(found.code_set) == sorted(row["codes"])
    assert (found.topic, found.sub_version, found.expression_type, found.class_filter_mode) == ("t", 7, "TAG", False)


@pytest.mark.parametrize("row", [row for row in ROWS if "error" in row], ids=lambda row: repr(row["tags"]))
def test_what_4_9_4_refuses_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(ExpressionError, match="subString split error"):
        build_subscription_data("t", row["tags"])


@pytest.mark.parametrize("expression", [None, "", "*", MessageSelector.by_tag(), MessageSelector.by_tag(None)])
def test_nothing_said_is_everything(expression: str | MessageSelector | None) -> None:
    found = build_subscription_data("t", expression)
    assert (found.sub_string, found.tags_set, found.code_set) == ("*", (), ())


def test_the_version_is_the_present_time() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= build_subscription_data("t").sub_version <= time.time_ns() // 1_000_000


def test_an_expression_stands_as_it_is() -> None:
    found = build_subscription_data("t", MessageSelector.by_sql(" a > 1 || b "), now=1)
    assert (found.sub_string, found.expression_type) == (" a > 1 || b ", "SQL92")
    assert (found.tags_set, found.code_set, found.is_tag_type) == ((), (), False)


@pytest.mark.parametrize("expression", ["", "  "])
def test_an_expression_that_says_nothing_is_refused(expression: str) -> None:
    with pytest.raises(ExpressionError, match="Expression can't be null! SQL92"):
        build_subscription_data("t", MessageSelector.by_sql(expression))


def test_tags_by_a_selector_are_tags() -> None:
    assert build_subscription_data("t", MessageSelector.by_tag("A || B"), now=1) == build_subscription_data(
        "t", "A || B", now=1
    )
