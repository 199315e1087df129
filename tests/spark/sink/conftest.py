"""An embedded cluster for the tests of the sink, and both sinks; older PySparks have that of the JVM alone."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from .engines import ColumnarEngine, Engine, PythonEngine
from .scene import Scene

SOURCES = ["rocketmq-columnar"]
if importlib.util.find_spec("pyspark.sql.datasource") is not None:
    SOURCES.append("rocketmq")


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> str:
    """The name of a data source to write with."""
    return cast("str", request.param)


@pytest.fixture(params=["python", pytest.param("columnar", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Engine:
    """What a task sends with."""
    if request.param == "python":
        return PythonEngine()
    return ColumnarEngine(request.getfixturevalue("spark"))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A broker that makes topics by itself."""
    with Scene(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def own_scene(tmp_path: Path) -> Iterator[Scene]:
    """As `scene`, of this test alone."""
    with Scene(tmp_path / "cluster") as running:
        yield running
