"""The examples in the docstrings of `rmqfast.spark.live` run as they stand."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", [pytest.param("live.reader", marks=pytest.mark.spark)])
def test_examples_run(name: str, request: pytest.FixtureRequest) -> None:
    module = importlib.import_module(f"rmqfast.spark.{name}")
    result = doctest.testmod(module, extraglobs={"getfixture": request.getfixturevalue})
    assert result.failed == 0
    assert result.attempted
