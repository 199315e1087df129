"""A plugin of pytest: a cluster for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from rmqfast.embedded import EmbeddedCluster

__all__ = ["rmqfast_broker_config", "rmqfast_cluster"]


@pytest.fixture
def rmqfast_broker_config() -> Mapping[str, str]:
    """Keys of `broker.conf` for the cluster of `rmqfast_cluster`: define a fixture of this name to have your own."""
    return {}


@pytest.fixture
def rmqfast_cluster(rmqfast_broker_config: Mapping[str, str]) -> Iterator[EmbeddedCluster]:
    """A name server and a broker of this test alone, on ports that were free; `name_server` is what clients need."""
    with EmbeddedCluster(config=rmqfast_broker_config) as cluster:
        yield cluster
