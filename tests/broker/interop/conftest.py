"""The cluster that RocketMQ's clients are let loose on: one for each module, with a store of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .cluster import SCENARIO, OurCluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurCluster]:
    """rmqfast's name server and broker, with the short times of the scenarios."""
    directory: Path = tmp_path_factory.mktemp("cluster")
    with OurCluster(directory, SCENARIO) as running:
        yield running
