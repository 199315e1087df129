"""Who asks the cluster of a module, and who sends there; each module has a fixture `cluster` of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.admin import Admin
from rmqfast.client.producer import Producer


@pytest.fixture(scope="module")
def admin(cluster: EmbeddedCluster) -> Iterator[Admin]:
    with Admin(name_server=cluster.name_server) as running:
        yield running


@pytest.fixture(scope="module")
def producer(cluster: EmbeddedCluster) -> Iterator[Producer]:
    with Producer("admin_tests", name_server=cluster.name_server) as running:
        yield running
