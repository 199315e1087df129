"""A cluster of two brokers in this process with a topic `orders`, which no test writes to."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.spark.conftest import has_filters
from tests.spark.engines import ENGINES

from . import topics

MESSAGES = 1200

collect_ignore: list[str] = []
if importlib.util.find_spec("pyspark.sql.datasource") is None:
    collect_ignore += ["test_stream_errors.py", "test_stream_reader.py"]
if not has_filters():
    collect_ignore += ["test_live_pushdown.py"]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """Each data source of this PySpark by name."""
    name: str = request.param
    return name


@dataclass(frozen=True)
class LiveCluster:
    """A cluster, and where its stores are."""

    name_server: str
    directory: Path


@pytest.fixture(scope="session")
def live_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    """Two brokers; `orders` has four queues on each."""
    directory = tmp_path_factory.mktemp("live")
    with topics.cluster_in(directory) as cluster:
        topics.create(cluster, "orders")
        topics.send(cluster, MESSAGES)
        yield LiveCluster(cluster.name_server, directory)
