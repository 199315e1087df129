"""A cluster for the push consumers of a module, through each face: each test has a topic and a group of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.client.producer import Producer
from rmqfast.client.push import PushConsumer
from tests.client.awaited import Face

from .listening import PATIENT, Make, consumer


@pytest.fixture(scope="module")
def make(face: Face) -> Make:
    """What makes a consumer: as `consumer`."""
    return partial(consumer, kind=face(PushConsumer))


@pytest.fixture(scope="module")
def cluster(face: Face) -> Iterator[EmbeddedCluster]:
    del face  # each has a cluster of its own, in which no topic is there yet
    # what is to come once more is due at once
    with EmbeddedCluster(config={"messageDelayLevel": " ".join(["0s"] * 18)}) as running:
        yield running


@pytest.fixture(scope="module")
def producer(cluster: EmbeddedCluster) -> Iterator[Producer]:
    with Producer("sends", name_server=cluster.name_server, config=PATIENT) as running:
        yield running
