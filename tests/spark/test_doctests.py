"""The examples in the docstrings of `rmqfast.spark`, but for those of live topics, run as they stand."""

from __future__ import annotations

import doctest
import importlib

import pytest

from .conftest import collect_ignore

MODULES = ["columnar"]
WITH_A_SESSION = ["ingest", "mapping", "reader", "session", "sink"]
if not collect_ignore:
    WITH_A_SESSION += ["source"]


@pytest.mark.parametrize("name", [*MODULES, *(pytest.param(m, marks=pytest.mark.spark) for m in WITH_A_SESSION)])
def test_examples_run(name: str, request: pytest.FixtureRequest) -> None:
    module = importlib.import_module(f"rmqfast.spark.{name}")
    result = doctest.testmod(module, extraglobs={"getfixture": request.getfixturevalue})
    assert result.failed == 0
    assert result.attempted
