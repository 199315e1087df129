"""Two consumers of one group that want different tags lose messages on rmqfast's broker as they do on RocketMQ's."""

from __future__ import annotations

import pytest

from rmqfast.admin import Admin, Outcome

from .cluster import OurCluster
from .goldens import golden
from .tag_conflict import GROUP, TOPIC, conflict


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_messages_on_the_queues_of_the_other_consumer_are_lost_and_called_consumed(cluster: OurCluster) -> None:
    assert conflict(cluster) == golden("tag-conflict-4.9.4")
    # Both consumers have left, and no trace was written: the ledger alone tells who took what.
    with Admin(name_server=cluster.name_server) as admin:
        told = {
            (row.queue_id, offset): admin.explain(admin.messages.by_offset(row.queue, offset), GROUP)
            for row in admin.topics.status(TOPIC)
            for offset in range(row.max_offset)
        }
    consumed = {place for place, each in told.items() if each.outcome is Outcome.CONSUMED}
    assert {queue for queue, _ in consumed} in ({0, 1}, {2, 3})
    assert (len(told), len(consumed)) == (8, 4)
    lost = [each for place, each in told.items() if place not in consumed]
    assert {each.outcome for each in lost} == {Outcome.LOST}
    # Java pulls on the connection of its heartbeats, which told its id.
    takers = {each.member for each in told.values()}
    assert len(takers) == 2
    assert all(taker is not None and "@" in taker for taker in takers)
    assert all("dropped by its tag check: its tag tag" in each.sentence for each in lost)


def test_the_recording_shows_what_the_conflict_is_about() -> None:
    expected = golden("tag-conflict-4.9.4")
    assert expected["owned"] == [[0, 1], [2, 3]]
    for moment, offsets, track in (("first", 0, "NOT_CONSUME_YET"), ("last", 2, "CONSUMED")):
        loser = expected[moment]["other"]
        assert loser == {"got": 0, "of its queues": True, "offsets": [f"{offsets} of 2"] * 2, "track": [track]}
    winner = expected["last"]["kept"]
    assert winner == {"got": 4, "of its queues": True, "offsets": ["2 of 2"] * 2, "track": ["CONSUMED"]}
