"""The pytest plugin, which starts a cluster for a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from rmqfast.embedded import EmbeddedCluster


@pytest.fixture
def rmqfast_broker_config() -> Mapping[str, str]:
    """Keys of `broker.conf` for `rmqfast_cluster`. Override this fixture to set keys."""
    return {}


@pytest.fixture
def rmqfast_cluster(rmqfast_broker_config: Mapping[str, str]) -> Iterator[EmbeddedCluster]:
    """A name server and a broker for one test, on free ports. Clients need its `name_server`."""
    with EmbeddedCluster(config=rmqfast_broker_config) as cluster:
        yield cluster
