"""A Java producer and a Java consumer while the broker is killed again and again."""

from __future__ import annotations

import pytest

from tests.effort import effort

from .cluster import OurCluster
from .kill9 import killed

ROUNDS = effort("RMQFAST_KILLS", 20, 50)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_nothing_acknowledged_is_lost_and_the_consumer_gets_all(cluster: OurCluster) -> None:
    """Fifty times with RMQFAST_FULL=1, or as RMQFAST_KILLS says."""
    outcome = killed(cluster, ROUNDS)
    assert outcome.lost == []
    assert outcome.not_consumed == []
    assert len(outcome.acknowledged) > 20 * ROUNDS
