"""How ranges become tasks, and how a trigger shares messages out: no Spark and no broker is needed for that."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rmqfast._native import cut_ranges, read_piece
from rmqfast.message import MessageQueue
from rmqfast.spark.live.stream_offsets import next_end

RANGES = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 5)),
    st.tuples(st.integers(0, 9), st.integers(1, 200_000)),
    max_size=8,
).map(lambda queues: [(*queue, start, start + rows) for queue, (start, rows) in sorted(queues.items())])


@given(RANGES, st.integers(1, 300_000), st.integers(1, 20))
def test_pieces_have_each_offset_once_and_a_queue_of_one_broker_once(
    ranges: list[tuple[str, int, int, int]], max_rows: int, min_partitions: int
) -> None:
    max_rows = max(max_rows, 1000)
    pieces = [read_piece(piece) for piece in cut_ranges(ranges, {"a": "10.0.0.1:10911"}, max_rows, min_partitions)]
    total = sum(end - start for _, _, start, end in ranges)
    assert len(pieces) >= min(min_partitions, total)
    assert sum(end - start for _, parts in pieces for _, _, start, end in parts) == total
    for broker, queue_id, start, end in ranges:
        own = [part for _, parts in pieces for part in parts if part[:2] == (broker, queue_id)]
        assert [own[0][2], *(part[3] for part in own)] == [*(part[2] for part in own), end]
        assert own[0][2] == start
    for address, parts in pieces:
        brokers = {part[0] for part in parts}
        assert len(brokers) == 1
        assert address == ("10.0.0.1:10911" if brokers == {"a"} else None)
        assert max(Counter(part[:2] for part in parts).values()) == 1
        assert sum(part[3] - part[2] for part in parts) <= max_rows


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
