"""Brokers that are left alone for a while."""

from __future__ import annotations

import pytest

from rmqfast.client.producer.fault_strategy import FaultStrategy, not_available_duration

from .topics import publish_queues


class Clock:
    """Milliseconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


@pytest.mark.parametrize(
    ("latency", "duration"),
    [
        (0, 0),
        (50, 0),
        (549, 0),
        (550, 30_000),
        (999, 30_000),
        (1000, 60_000),
        (2000, 120_000),
        (3000, 180_000),
        (14_999, 180_000),
        (15_000, 600_000),
        (30_000, 600_000),
    ],
)
def test_how_long_a_broker_is_left_alone_is_javas_table(latency: int, duration: int) -> None:
    assert not_available_duration(latency) == duration


def test_a_slow_broker_is_passed_over_until_its_time_is_over() -> None:
    clock = Clock()
    strategy, queues = FaultStrategy(clock=clock), publish_queues({"a": 2, "b": 2})
    strategy.update("a", 600)
    assert {strategy.select(queues).broker_name for _ in range(8)} == {"b"}
    clock.now += 29_999
    assert {strategy.select(queues).broker_name for _ in range(8)} == {"b"}
    clock.now += 1
    assert {strategy.select(queues).broker_name for _ in range(8)} == {"a", "b"}


def test_a_failed_call_counts_as_thirty_seconds() -> None:
    clock = Clock()
    strategy = FaultStrategy(clock=clock)
    strategy.update("a", 3, isolates=True)
    clock.now += 599_999
    assert not strategy.tolerance.is_available("a")
    clock.now += 1
    assert strategy.tolerance.is_available("a")


def test_where_all_are_slow_one_of_the_better_half_is_taken() -> None:
    strategy = FaultStrategy(clock=Clock())
    queues = publish_queues({"a": 2, "b": 2, "c": 2, "d": 2})
    for name, latency in {"a": 20_000, "b": 600, "c": 700, "d": 16_000}.items():
        strategy.update(name, latency)
    chosen = [strategy.select(queues) for _ in range(40)]
    assert {queue.broker_name for queue in chosen} == {"b", "c"}
    assert {queue.queue_id for queue in chosen} == {0, 1}


def test_a_slow_broker_without_queues_is_forgotten() -> None:
    strategy = FaultStrategy(clock=Clock())
    queues = publish_queues({"a": 2})
    strategy.update("a", 20_000)
    strategy.tolerance.update("gone", 1, 1)
    assert strategy.select(queues).broker_name == "a"
    assert strategy.tolerance.pick_one_at_least() == "a"
