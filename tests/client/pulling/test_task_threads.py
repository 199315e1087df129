"""Threads that do what is due."""

from __future__ import annotations

import threading

from rmqfast.client.pulling.task_threads import TaskThreads
from tests.waiting import until


def test_threads_do_what_is_due_while_others_are_busy() -> None:
    threads, go, done = TaskThreads("test", 3), threading.Event(), list[int]()

    def of_test() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith("test-")]

    def wait() -> None:
        go.wait(20)

    def fail() -> None:
        raise ZeroDivisionError

    for _ in range(2):
        threads.later(0.0, wait)
    threads.later(0.05, lambda: done.append(2))
    threads.later(0.0, lambda: done.append(1))
    until(lambda: done == [1, 2])
    threads.later(0.0, fail)
    threads.later(0.0, lambda: done.append(3))
    until(lambda: 3 in done)
    assert len(of_test()) <= 3
    go.set()
    threads.close(10)
    assert not of_test()
    threads.later(0.0, lambda: done.append(4))
    assert 4 not in done
