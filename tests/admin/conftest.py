"""Who asks the cluster of a module, and who sends there; each module has a fixture `cluster` of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.admin import Admin
from rmqfast.client.producer import Producer

from .faces import FACES, made


@pytest.fixture(scope="module", params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def admin(cluster: EmbeddedCluster, face: str) -> Iterator[Admin]:
    with made(face, cluster.name_server) as admin, admin:
        yield admin


@pytest.fixture(scope="module")
def producer(cluster: EmbeddedCluster) -> Iterator[Producer]:
    with Producer("admin_tests", name_server=cluster.name_server) as running:
        yield running
