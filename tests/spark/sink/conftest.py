"""An embedded cluster for the tests of the sink; older PySparks have no data source to write to."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from .scene import Scene

collect_ignore: list[str] = []
if importlib.util.find_spec("pyspark.sql.datasource") is None:
    collect_ignore += ["test_topic_writer.py", "test_stream_writer.py"]


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
