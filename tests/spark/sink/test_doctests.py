"""The examples in the docstrings of the sink run as they stand."""

from __future__ import annotations

import doctest
import importlib

import pytest

import rmqfast.client.producer.row_producer

MODULES = ["columns", "lanes", "queue_choice", "row_batches", "row_groups", "sender", "task", "written"]


@pytest.mark.parametrize("name", [*MODULES, "options"])
def test_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"rmqfast.spark.sink.{name}")).failed == 0


@pytest.mark.spark
def test_the_example_of_write_topic_runs(request: pytest.FixtureRequest) -> None:
    module = importlib.import_module("rmqfast.spark.sink.write_topic")
    result = doctest.testmod(module, extraglobs={"getfixture": request.getfixturevalue})
    assert (result.failed, result.attempted) == (0, 4)


def test_the_example_of_the_producer_of_rows_runs() -> None:
    result = doctest.testmod(rmqfast.client.producer.row_producer)
    assert result.failed == 0
    assert result.attempted > 3
