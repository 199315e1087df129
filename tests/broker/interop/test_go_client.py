"""RocketMQ's Go client finds on rmqfast's broker what it finds on RocketMQ's."""

from __future__ import annotations

import pytest

from . import go_client
from .cluster import OurCluster
from .goldens import golden


@pytest.mark.long
@pytest.mark.timeout(400)
def test_producer_and_consumers_tell_the_same_rows(cluster: OurCluster) -> None:
    assert go_client.rows(cluster) == golden("go-client-4.9.4")
