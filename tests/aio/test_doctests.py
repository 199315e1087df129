"""The examples in the public docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rmqfast.aio

MODULES = [module.name for module in pkgutil.walk_packages(rmqfast.aio.__path__, "rmqfast.aio.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
