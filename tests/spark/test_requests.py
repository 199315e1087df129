"""Options of every kind mean what they meant before `rust/spark` read them; `rust/spark/tests/golden.rs` asks Rust."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqfast._native import SparkOptions
from rmqfast.errors import ArgumentError, RmqError
from rmqfast.store import milliseconds

GOLDEN = Path(__file__).parents[1] / "golden" / "spark-requests.jsonl.gz"
#: Errors that only a read of topics tells, not its options alone.
OF_TOPICS = re.compile(
    r"(starting|ending)Offsets: |assign: |option (assign|subscribePattern): expected|the specified topic", re.IGNORECASE
)
KINDS = ("store batch", "store stream", "topic batch", "topic stream", "sink")


@cache
def golden() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The first line, and the others."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
        first, *rows = (json.loads(line) for line in lines)
    return first, rows


def given_by(kind: str, options: dict[str, str]) -> dict[str, Any]:
    facts, _ = golden()
    native = SparkOptions(kind, options)
    usual = facts["usual"][kind]
    values = {name: listed(value) for name, value in native.values.items() if usual[name] != listed(value)}
    if kind == "store batch":
        start, end = ({}, {}) if native.are_offsets_whole() else native.offset_bounds(store_queues(facts))
        return {"values": values, "start_offset": by_text(start), "end_offset": by_text(end)}
    if kind == "store stream":
        return {"values": values, "begin": native.begin}
    return {"values": values}


def store_queues(facts: Mapping[str, Any]) -> dict[int, tuple[int, int]]:
    return {int(queue_id): (first, last) for queue_id, (first, last) in facts["queues"]["store"].items()}


def by_text(bounds: Mapping[int, int]) -> dict[str, int] | None:
    return {str(queue_id): offset for queue_id, offset in bounds.items()} or None


def listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("kind", KINDS)
def test_each_text_means_what_it_meant(kind: str) -> None:
    _, rows = golden()
    mine = [row for row in rows if row["kind"] == kind]
    assert len(mine) > 500
    for row in mine:
        got: dict[str, Any]
        try:
            got = {"gives": given_by(kind, row["options"])}
        except RmqError as error:
            got = {"error": [type(error).__name__, str(error)]}
        expected = {name: row[name] for name in ("gives", "error") if name in row}
        if kind.startswith("topic"):  # a read of topics is Rust alone
            if "gives" in expected:
                expected = {"gives": {"values": expected["gives"]["values"]}}
            elif OF_TOPICS.match(expected["error"][1]):
                continue
        assert got == expected, row["options"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_golden_file_has_every_option(kind: str) -> None:
    facts, rows = golden()
    given_names = {name.lower() for row in rows if row["kind"] == kind for name in row["options"]}
    assert {name.lower() for name in SparkOptions.names(kind)} <= given_names
    assert {argument for _, argument in SparkOptions.arguments(kind)} == set(facts["usual"][kind])


@given(st.datetimes(), st.sampled_from(["", "Z", "+00:00", "-07:30", "+05:45:10"]), st.sampled_from(["T", " "]))
def test_a_time_that_python_prints_is_that_time(when: Any, zone: str, separator: str) -> None:
    text = when.isoformat(separator) + zone
    from_python = type(when).fromisoformat(text)
    assert milliseconds(text) == milliseconds(from_python)
    year, week, day = when.isocalendar()
    if year == when.year:
        assert milliseconds(f"{year:04}-W{week:02}-{day}") == milliseconds(f"{when:%Y%m%d}T00".rjust(11, "0"))


@given(st.text("0123456789-:+.,TWZ ", max_size=26))
def test_a_text_is_no_time_where_it_is_none_to_python(text: str) -> None:
    from datetime import datetime

    try:
        mine = milliseconds(text)
    except ArgumentError:
        return
    if not text.lstrip("-").isdigit():
        assert mine == milliseconds(datetime.fromisoformat(text))
