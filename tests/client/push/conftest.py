"""One cluster for all push consumers: each test has a topic and a group of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.client.producer import Producer

from .listening import PATIENT


@pytest.fixture(scope="package")
def cluster() -> Iterator[EmbeddedCluster]:
    # what is to come once more is due at once
    with EmbeddedCluster(config={"messageDelayLevel": " ".join(["0s"] * 18)}) as running:
        yield running


@pytest.fixture(scope="package")
def producer(cluster: EmbeddedCluster) -> Iterator[Producer]:
    with Producer("sends", name_server=cluster.name_server, config=PATIENT) as running:
        yield running
