"""The examples in the public docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rmqfast.message
import rmqfast.store

MODULES = [
    "rmqfast.message",
    *(module.name for module in pkgutil.walk_packages(rmqfast.store.__path__, "rmqfast.store.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str, request: pytest.FixtureRequest) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"getfixture": request.getfixturevalue})
    assert result.failed == 0


def test_there_are_examples() -> None:
    modules = [importlib.import_module(name) for name in MODULES]
    examples = [test for module in modules for test in doctest.DocTestFinder().find(module) if test.examples]
    assert len(examples) >= 10
