"""How ranges become tasks, and how a trigger shares messages out: no Spark and no broker is needed for that."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rmqfast.client.ranges import QueueRange
from rmqfast.message import MessageQueue
from rmqfast.spark.live.stream_offsets import next_end
from rmqfast.spark.live.topic_read import cut_ranges

RANGES = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 5)),
    st.tuples(st.integers(0, 9), st.integers(1, 200_000)),
    max_size=8,
).map(
    lambda found: [
        QueueRange(MessageQueue("orders", broker, queue_id), start, start + rows)
        for (broker, queue_id), (start, rows) in sorted(found.items())
    ]
)


@given(RANGES, st.integers(1, 300_000), st.integers(1, 20))
def test_partitions_have_each_offset_once_and_a_queue_of_one_broker_once(
    ranges: list[QueueRange], max_rows: int, min_partitions: int
) -> None:
    max_rows = max(max_rows, 1000)
    parts = cut_ranges(ranges, {"a": "10.0.0.1:10911"}, max_rows=max_rows, min_partitions=min_partitions)
    total = sum(len(wanted.offsets) for wanted in ranges)
    assert len(parts) >= min(min_partitions, total)
    pieces = [piece for part in parts for piece in part.ranges]
    assert sum(len(piece.offsets) for piece in pieces) == total
    for wanted in ranges:
        own = [piece for piece in pieces if piece.queue == wanted.queue]
        assert [own[0].start, *(piece.end for piece in own)] == [*(piece.start for piece in own), wanted.end]
    for part in parts:
        brokers = {piece.queue.broker_name for piece in part.ranges}
        assert len(brokers) == 1
        assert part.address == ("10.0.0.1:10911" if brokers == {"a"} else None)
        assert max(Counter(piece.queue for piece in part.ranges).values()) == 1
        assert sum(len(piece.offsets) for piece in part.ranges) <= max_rows


QUEUES = [MessageQueue("orders", "b", queue_id) for queue_id in range(4)]


def test_a_queue_that_is_away_stays_and_a_new_one_joins_where_it_begins() -> None:
    found = next_end({QUEUES[0]: 5, QUEUES[1]: 7}, {QUEUES[0]: (0, 9), QUEUES[2]: (3, 30)}, None)
    assert found.end == {QUEUES[0]: 9, QUEUES[1]: 7, QUEUES[2]: 3}
    assert (found.waiting, found.expired, found.shorter) == (4, (), ())


def test_what_expired_and_what_is_gone_is_told() -> None:
    found = next_end({QUEUES[0]: 5, QUEUES[1]: 70}, {QUEUES[0]: (20, 30), QUEUES[1]: (0, 60)}, 4)
    assert found.end == {QUEUES[0]: 24, QUEUES[1]: 70}
    assert (found.waiting, found.expired, found.shorter) == (10, (QUEUES[0],), (QUEUES[1],))


@given(st.lists(st.integers(0, 1 << 40), max_size=12), st.integers(1, 1 << 41))
def test_a_batch_gets_as_many_as_allowed_or_all(waiting: list[int], most: int) -> None:
    queues = [MessageQueue("orders", "b", queue_id) for queue_id in range(len(waiting))]
    bounds = {queue: (0, count) for queue, count in zip(queues, waiting, strict=True)}
    found = next_end(dict.fromkeys(queues, 0), bounds, most)
    assert found.waiting == sum(waiting)
    assert list(found.end) == queues
    assert all(0 <= found.end[queue] <= last for queue, (_, last) in bounds.items())
    assert sum(found.end.values()) == min(most, sum(waiting))
