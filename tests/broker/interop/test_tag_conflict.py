"""Two consumers of one group that want different tags lose messages on rmqfast's broker as they do on RocketMQ's."""

from __future__ import annotations

import pytest

from .cluster import OurCluster
from .goldens import golden
from .tag_conflict import conflict


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_messages_on_the_queues_of_the_other_consumer_are_lost_and_called_consumed(cluster: OurCluster) -> None:
    assert conflict(cluster) == golden("tag-conflict-4.9.4")


def test_the_recording_shows_what_the_conflict_is_about() -> None:
    expected = golden("tag-conflict-4.9.4")
    assert expected["owned"] == [[0, 1], [2, 3]]
    for moment, offsets, track in (("first", 0, "NOT_CONSUME_YET"), ("last", 2, "CONSUMED")):
        loser = expected[moment]["other"]
        assert loser == {"got": 0, "of its queues": True, "offsets": [f"{offsets} of 2"] * 2, "track": [track]}
    winner = expected["last"]["kept"]
    assert winner == {"got": 4, "of its queues": True, "offsets": ["2 of 2"] * 2, "track": ["CONSUMED"]}
