"""The examples in the docstrings of the broker run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rmqfast.broker

MODULES = [module.name for module in pkgutil.walk_packages(rmqfast.broker.__path__, "rmqfast.broker.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str, request: pytest.FixtureRequest) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"getfixture": request.getfixturevalue}).failed == 0
