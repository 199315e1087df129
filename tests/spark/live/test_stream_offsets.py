"""What the driver of a stream decides, on a broker in this process; no Spark is needed for that."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rmqfast._native import read_piece
from rmqfast.errors import ArgumentError, DataLossError
from rmqfast.message import MessageQueue
from rmqfast.spark.live.stream_offsets import checkpoint_offsets, offsets_json
from rmqfast.spark.live.topic_read import TopicRead
from rmqfast.spark.live.topic_stream import StreamLimits, TopicStream
from tests.client.ranges.clusters import RestartableCluster, request
from tests.waiting import PATIENCE, until

COUNT = 3000
QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RestartableCluster]:
    """A broker with a queue of `orders`."""
    with RestartableCluster(tmp_path / "store", fileReservedTime="0") as started:
        started.create("orders")
        started.fill("orders", COUNT)
        yield started


class Clock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def stream(
    cluster: RestartableCluster,
    limits: StreamLimits | None = None,
    clock: Callable[[], float] = time.monotonic,
    **changes: Any,
) -> TopicStream:
    read = TopicRead(request=request(cluster.name_server, **{"patience": PATIENCE, **changes}), start="earliest")
    return TopicStream(read, limits or StreamLimits(), clock=clock)


def test_a_batch_takes_what_there_is_or_as_much_as_allowed(cluster: RestartableCluster) -> None:
    of = stream(cluster, StreamLimits(most=1000))
    start = of.initial()
    assert start == {QUEUE: 0}
    assert of.end(start, is_limited=True) == {QUEUE: 1000}
    assert of.end(start, is_limited=False) == {QUEUE: COUNT}
    assert of.latest == {QUEUE: COUNT}
    (piece,) = of.pieces({QUEUE: 5}, {QUEUE: 1000})
    assert read_piece(piece) == (cluster.broker, [("broker-a", 0, 5, 1000)])
    assert of.pieces({QUEUE: 5}, {QUEUE: 5}) == []
    of.stop()


def test_a_trigger_for_what_is_available_now_goes_no_further(cluster: RestartableCluster) -> None:
    of = stream(cluster)
    start = of.initial()
    of.aim()
    cluster.fill("orders", 10)
    assert of.end(start, is_limited=True) == {QUEUE: COUNT}
    assert of.end({QUEUE: COUNT}, is_limited=True) == {QUEUE: COUNT}
    of.stop()


def test_too_few_messages_wait_for_more_or_for_the_delay(cluster: RestartableCluster) -> None:
    clock = Clock()
    of = stream(cluster, StreamLimits(least=COUNT + 5, delay=900), clock)
    assert of.end({QUEUE: 0}, is_limited=True) == {QUEUE: 0}
    assert of.end({QUEUE: 0}, is_limited=False) == {QUEUE: COUNT}
    cluster.fill("orders", 5)
    assert of.end({QUEUE: 0}, is_limited=True) == {QUEUE: COUNT + 5}
    clock.now = 899.0
    assert of.end({QUEUE: COUNT}, is_limited=True) == {QUEUE: COUNT}
    clock.now = 900.0
    assert of.end({QUEUE: COUNT}, is_limited=True) == {QUEUE: COUNT + 5}
    of.stop()


def test_a_cluster_that_is_away_leaves_a_stream_where_it_is(cluster: RestartableCluster) -> None:
    of = stream(cluster)
    assert of.end({QUEUE: 100}, is_limited=True) == {QUEUE: COUNT}
    cluster.stop()
    assert of.end({QUEUE: 100}, is_limited=True) == {QUEUE: 100}
    (piece,) = of.pieces({QUEUE: 100}, {QUEUE: 200})
    assert read_piece(piece)[0] == cluster.broker
    cluster.start()
    until(lambda: of.end({QUEUE: 100}, is_limited=True) == {QUEUE: COUNT})  # nobody tries an address again at once
    of.stop()


def test_a_broker_that_is_away_leaves_a_stream_where_it_is(cluster: RestartableCluster) -> None:
    of = stream(cluster)
    assert of.end({QUEUE: 100}, is_limited=True) == {QUEUE: COUNT}
    assert cluster.running is not None
    cluster.running.brokers[0].stop()  # the name server forgets the topic
    assert of.end({QUEUE: 100}, is_limited=True) == {QUEUE: 100}
    of.stop()


def test_retention_that_overtakes_a_stream_fails_or_is_told_once(
    cluster: RestartableCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.expire()
    of = stream(cluster)
    with pytest.raises(DataLossError, match=r"broker-a, queue 0: .* offset 7 has expired, .*\nfailOnDataLoss=f"):
        of.end({QUEUE: 7}, is_limited=True)
    of.stop()
    careless = stream(cluster, StreamLimits(most=10), on_damage="warn")
    found = careless.end({QUEUE: 7}, is_limited=True)
    assert found == careless.end({QUEUE: 7}, is_limited=True)
    assert found[QUEUE] > 17
    assert caplog.text.count("has expired") == 1
    careless.stop()


def test_a_queue_that_ends_before_the_stream_is_waited_for_and_then_a_loss(cluster: RestartableCluster) -> None:
    start = {QUEUE: COUNT + 50}
    for on_damage in ("fail", "warn"):
        clock = Clock()
        of = stream(cluster, clock=clock, on_damage=on_damage)
        for clock.now in (1.0, 1.0 + PATIENCE):
            assert of.end(start, is_limited=True) == start
        clock.now += 1
        if on_damage == "fail":
            with pytest.raises(DataLossError, match=f"ends at {COUNT}, before offset {COUNT + 50}: its broker lost"):
                of.end(start, is_limited=True)
        else:
            assert of.end(start, is_limited=True) == {QUEUE: COUNT}
        of.stop()


def test_a_stream_goes_to_tasks_without_its_connections(cluster: RestartableCluster) -> None:
    of = stream(cluster)
    of.initial()
    copy = pickle.loads(pickle.dumps(of))  # noqa: S301
    of.stop()
    assert copy.initial() == {QUEUE: 0}
    copy.stop()


def test_offsets_of_a_checkpoint_are_those_of_its_topic() -> None:
    assert checkpoint_offsets(offsets_json("orders", {QUEUE: 7}), "orders") == {QUEUE: 7}
    others: tuple[Any, ...] = ({"bills": {}}, {"log": 7}, [], {"orders": {"b": {"x": 1}}})
    for other in others:
        with pytest.raises(ArgumentError, match=r"checkpoint: .*; give this stream a checkpointLocation of its own"):
            checkpoint_offsets(other, "orders")
