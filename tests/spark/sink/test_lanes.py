"""Lanes: work side by side, in order within a lane; a failure ends all."""

from __future__ import annotations

import threading

import pytest

from rmqfast.spark.sink.lanes import Lanes
from tests.waiting import until


def test_a_lane_keeps_its_order_while_another_one_waits() -> None:
    done: list[int] = []
    gate = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            gate.wait()
        done.append(number)

    lanes = Lanes(2, work)
    for number in (0, 1, 3, 5, 2):
        lanes.put(number, number)
    until(lambda: len(done) == 3)
    gate.set()
    lanes.finish()
    assert done == [1, 3, 5, 0, 2]


def test_a_failure_is_raised_where_work_is_given_and_at_the_end() -> None:
    before = set(threading.enumerate())
    done: list[int] = []

    def work(number: int) -> None:
        if number == 3:
            raise ValueError("three")
        done.append(number)

    lanes = Lanes(1, work)

    def put_many() -> None:
        for number in range(1000):
            lanes.put(number, number)

    with pytest.raises(ValueError, match="three"):
        put_many()
    with pytest.raises(ValueError, match="three"):
        lanes.finish()
    assert done == [0, 1, 2]
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("rmqfast-sink")]


def test_stopping_drops_what_waits_and_ends_the_threads() -> None:
    began, done = threading.Event(), list[int]()

    def work(number: int) -> None:
        began.set()
        lanes.stopping.wait()
        done.append(number)

    lanes = Lanes(1, work)
    for number in range(3):
        lanes.put(0, number)
    until(began.is_set)
    lanes.stop()
    assert done == [0]
    assert lanes.stopping.is_set()
