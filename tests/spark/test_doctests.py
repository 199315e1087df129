"""The examples in the docstrings of `rmqfast.spark` run as they stand."""

from __future__ import annotations

import doctest
import importlib

import pytest

from .conftest import collect_ignore

MODULES = [
    "columnar",
    "frames",
    "mapping",
    "offsets",
    "options",
    "partitions",
    "pushdown",
    "reader",
    "schema",
    "session",
    "task",
]
if not collect_ignore:
    MODULES += ["filters", "live.topic_filter", "pushed_filters", "source"]


@pytest.mark.spark
@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str, request: pytest.FixtureRequest) -> None:
    module = importlib.import_module(f"rmqfast.spark.{name}")
    result = doctest.testmod(module, extraglobs={"getfixture": request.getfixturevalue})
    assert result.failed == 0
