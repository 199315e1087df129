"""The text is what Prometheus reads, whatever names clients gave to topics and groups."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqfast.metrics import Family, Histogram, Kind, Sample, write_text

from .reading import samples_of

HOSTILE = ['a"b', "a\\b", "a\nb", "a\\", '"', "{}", 'x",y="z', "\u2028", "\x00", "<script>", "消息", "#"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_one_label(name: str) -> None:
    family = Family("lag", Kind.GAUGE, 'of a "group" \\ in\na topic', ("topic", "group"), [Sample((name, "g"), 1)])
    found = samples_of(write_text([family], {"cluster": name}))
    assert found == {"lag": {frozenset({("cluster", name), ("topic", name), ("group", "g")}): 1}}


def test_half_of_a_surrogate_pair_does_not_end_the_text() -> None:
    family = Family("lag", Kind.GAUGE, "h", ("topic",), [Sample(("a\ud800b",), 1)])
    assert 'lag{topic="a?b"} 1\n' in write_text([family])


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.floats(allow_nan=False)), unique_by=lambda s: s[0]))
def test_any_label_and_value_is_read_back(samples: list[tuple[str, float]]) -> None:
    family = Family("lag", Kind.GAUGE, "h", ("topic",), [Sample((name,), number) for name, number in samples])
    found = samples_of(write_text([family]))
    assert found.get("lag", {}) == {frozenset({("topic", name)}): number for name, number in samples}


def test_numbers_that_are_none_are_read_as_such() -> None:
    family = Family("n", Kind.GAUGE, "h", ("of",), [Sample((str(each),), each) for each in (math.nan, math.inf, 1e300)])
    values = list(samples_of(write_text([family]))["n"].values())
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, 1e300]


def test_a_histogram_adds_its_ranges_up() -> None:
    family = Family("put_seconds", Kind.HISTOGRAM, "h", (), [Histogram((), (0.001, 0.01), (5, 0, 2))])
    assert samples_of(write_text([family])) == {
        "put_seconds_bucket": {
            frozenset({("le", "0.001")}): 5,
            frozenset({("le", "0.01")}): 5,
            frozenset({("le", "+Inf")}): 7,
        },
        "put_seconds_count": {frozenset(): 7},
    }


def test_a_family_without_samples_is_left_out() -> None:
    assert write_text([Family("lag", Kind.GAUGE, "h", ("topic",), [])]) == ""
