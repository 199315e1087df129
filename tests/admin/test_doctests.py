"""The examples in the public docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rmqfast.admin

MODULES = [module.name for module in pkgutil.walk_packages(rmqfast.admin.__path__, "rmqfast.admin.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
