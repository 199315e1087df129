"""The examples in the docstrings of all packages run; those of Spark have tests of their own (`tests/spark`)."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rmqfast

#: The extension has no docstrings of its own to run, Spark needs a session, and `__main__` is the program.
ELSEWHERE = ("rmqfast._native", "rmqfast.spark", "rmqfast.__main__")
MODULES = [
    each.name for each in pkgutil.walk_packages(rmqfast.__path__, "rmqfast.") if not each.name.startswith(ELSEWHERE)
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str, request: pytest.FixtureRequest) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"getfixture": request.getfixturevalue}).failed == 0


def test_there_are_examples() -> None:
    modules = [importlib.import_module(name) for name in MODULES]
    examples = [test for module in modules for test in doctest.DocTestFinder().find(module) if test.examples]
    assert len(examples) > 100
