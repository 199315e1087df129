"""The examples in the public docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rmqfast.nameserver

MODULES = [module.name for module in pkgutil.walk_packages(rmqfast.nameserver.__path__, "rmqfast.nameserver.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str, request: pytest.FixtureRequest) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"getfixture": request.getfixturevalue}).failed == 0


def test_there_are_examples() -> None:
    modules = [importlib.import_module(name) for name in MODULES]
    assert sum(bool(test.examples) for module in modules for test in doctest.DocTestFinder().find(module)) >= 4
