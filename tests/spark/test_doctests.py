"""The examples in the docstrings of `rmqfast.spark` run as they stand."""

from __future__ import annotations

import doctest
import importlib

import pytest

from .conftest import collect_ignore

MODULES = ["columnar", "frames", "offsets", "options", "partitions", "pushdown", "schema", "task"]
if not collect_ignore:
    MODULES += ["filters", "live.topic_filter", "pushed_filters"]
WITH_A_SESSION = ["mapping", "reader", "session"] + ([] if collect_ignore else ["source"])


@pytest.mark.parametrize("name", [*MODULES, *(pytest.param(m, marks=pytest.mark.spark) for m in WITH_A_SESSION)])
def test_examples_run(name: str, request: pytest.FixtureRequest) -> None:
    module = importlib.import_module(f"rmqfast.spark.{name}")
    result = doctest.testmod(module, extraglobs={"getfixture": request.getfixturevalue})
    assert result.failed == 0
