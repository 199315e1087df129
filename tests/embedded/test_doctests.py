"""The examples in the docstrings of the embedded cluster run."""

from __future__ import annotations

import doctest

import pytest

from rmqfast.embedded import cluster, scratch


@pytest.mark.parametrize("module", [cluster, scratch])
def test_the_examples_of_a_module_run(module: object, request: pytest.FixtureRequest) -> None:
    result = doctest.testmod(module, extraglobs={"getfixture": request.getfixturevalue})  # type: ignore[arg-type]
    assert (result.failed, result.attempted > 0) == (0, True)
