"""What is done now and then."""

from __future__ import annotations

import threading
import weakref

import pytest

from rmqfast.client.instance.heartbeats import Reconnects
from rmqfast.client.instance.scheduler import Handle, Scheduler, TimerTable
from tests.waiting import PATIENCE, until


def test_what_is_due_first_is_done_first_and_not_before() -> None:
    table, done = TimerTable(), list[str]()
    table.add(3.0, lambda: done.append("b"))
    table.add(1.0, lambda: done.append("a"))
    assert table.take_due(0.5) is None
    assert table.wait(0.5) == 0.5
    for now in (1.0, 3.0):
        work = table.take_due(now)
        assert work is not None
        work()
    assert done == ["a", "b"]
    assert table.wait(9.0) is None


def test_what_comes_again_keeps_its_rhythm_and_is_not_made_up_for() -> None:
    table = TimerTable()
    handle = table.add(10.0, lambda: None, period=5.0)
    assert table.take_due(11.0) is not None
    assert handle.at == 15.0
    assert table.take_due(33.0) is not None
    assert handle.at == 35.0
    assert table.take_due(33.0) is None


def test_what_is_cancelled_is_not_done() -> None:
    table = TimerTable()
    once, again = table.add(1.0, lambda: None), table.add(2.0, lambda: None, period=1.0)
    once.cancel()
    assert table.take_due(2.0) is not None
    again.cancel()
    assert table.take_due(9.0) is None
    assert table.wait(9.0) is None


def test_work_that_fails_is_logged_and_the_next_one_is_done(caplog: pytest.LogCaptureFixture) -> None:
    scheduler, done = Scheduler(), threading.Event()

    def fails() -> None:
        raise ValueError("of no use")

    scheduler.later(0.0, fails)
    scheduler.later(0.01, done.set)
    assert done.wait(PATIENCE)
    assert scheduler.stop(PATIENCE)
    assert "of no use" in caplog.text


def test_a_scheduler_that_is_stopped_does_no_more_and_has_no_thread() -> None:
    scheduler, done, threads = Scheduler("rmqfast-test-timer"), threading.Event(), set[threading.Thread]()

    def work() -> None:
        threads.add(threading.current_thread())
        done.set()

    scheduler.every(0.0, 0.01, work)
    assert done.wait(PATIENCE)
    assert scheduler.stop(PATIENCE)
    assert [thread.is_alive() for thread in threads] == [False]
    scheduler.later(0.0, work)
    assert "rmqfast-test-timer" not in {thread.name for thread in threading.enumerate()}, "nobody is there to do it"


def test_work_that_is_done_is_let_go() -> None:
    class Client:
        def work(self) -> None:
            ran.set()

    scheduler, ran = Scheduler(), threading.Event()
    client = Client()
    seen = weakref.ref(client)
    scheduler.later(0.0, client.work)
    del client
    assert ran.wait(PATIENCE)
    assert scheduler.stop(PATIENCE)
    assert seen() is None


def test_threads_do_what_is_due_while_others_are_busy() -> None:
    threads, go, done = Scheduler("test", 3), threading.Event(), list[int]()

    def of_test() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith("test-")]

    def wait() -> None:
        go.wait(20)

    def fail() -> None:
        raise ZeroDivisionError

    for _ in range(2):
        threads.later(0.0, wait)
    # what is due much later is in nobody's way
    threads.later(3600.0, lambda: done.append(0))
    threads.later(0.0, lambda: done.append(1))
    until(lambda: done == [1])
    threads.later(0.05, lambda: done.append(2))
    until(lambda: done == [1, 2])
    threads.later(0.0, fail)
    threads.later(0.0, lambda: done.append(3))
    until(lambda: 3 in done)
    assert len(of_test()) <= 3
    go.set()
    threads.stop(10)
    assert not of_test()
    threads.later(0.0, lambda: done.append(4))
    assert 4 not in done


class NoTime(Scheduler):
    """Notes what is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, Handle]] = []

    def later(self, delay_seconds: float, work: object) -> Handle:
        handle = Handle(delay_seconds, len(self.asked), work)  # type: ignore[arg-type]
        self.asked.append((delay_seconds, handle))
        return handle


def test_a_broker_whose_connection_ended_is_told_ever_later_until_it_takes_it() -> None:
    scheduler, answers = NoTime(), iter([False, False, True])
    reconnects = Reconnects(scheduler, lambda _: next(answers), 30.0, chance=lambda: 0.5)
    reconnects.lost("a:1")
    reconnects.lost("a:1")  # it is being seen to
    for at in range(3):
        scheduler.asked[at][1].work()
    assert [delay for delay, _ in scheduler.asked] == [0.5, 1.0, 2.0]
    reconnects.lost("a:1")
    assert len(scheduler.asked) == 4


def test_after_a_while_it_is_left_to_the_usual_heartbeats() -> None:
    scheduler = NoTime()
    reconnects = Reconnects(scheduler, lambda _: False, 4.0, chance=lambda: 0.5)
    reconnects.lost("a:1")
    for at in range(3):
        scheduler.asked[at][1].work()
    assert [delay for delay, _ in scheduler.asked] == [0.5, 1.0, 2.0]
