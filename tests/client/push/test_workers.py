"""Threads that consume: each task once, in order; as many threads as tasks that wait, and no task left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rmqfast.client.push.consume_service import Workers
from tests.waiting import PATIENCE, until


@contextmanager
def started(workers: Workers[int]) -> Iterator[Workers[int]]:
    workers.start()
    yield workers
    assert workers.stop(PATIENCE)


class Seen:
    """Notes tasks, and waits for the last one."""

    def __init__(self, wanted: int) -> None:
        self.tasks: list[int] = []
        self.over, self._wanted = threading.Event(), wanted

    def __call__(self, task: int) -> None:
        self.tasks.append(task)
        if len(self.tasks) == self._wanted:
            self.over.set()


@pytest.mark.parametrize("submitted", ["at once", "one by one"])
def test_tasks_that_wait_get_all_threads(submitted: str) -> None:
    seen, together = Seen(20), threading.Barrier(20)

    def run(task: int) -> None:
        together.wait(PATIENCE)
        seen(task)

    with started(Workers(run, 20, "t")) as workers:
        for tasks in [range(20)] if submitted == "at once" else [[task] for task in range(20)]:
            workers.submit(tasks)
        assert seen.over.wait(PATIENCE)


def test_python_at_work_elsewhere_does_not_keep_threads_from_joining() -> None:
    seen, is_over, together = Seen(8), threading.Event(), threading.Barrier(8)

    def spin() -> None:
        while not is_over.is_set():
            sum(range(1_000))

    def run(task: int) -> None:
        together.wait(PATIENCE)
        seen(task)

    spinner = threading.Thread(target=spin)
    spinner.start()
    try:
        with started(Workers(run, 8, "t")) as workers:
            workers.submit(range(8))
            assert seen.over.wait(PATIENCE)
    finally:
        is_over.set()
        spinner.join()


def test_no_task_is_left_behind_whoever_submits() -> None:
    seen = Seen(40_000)
    with started(Workers(seen, 4, "t")) as workers:

        def submit(first: int) -> None:
            for number in range(10_000):
                workers.submit([first + number])
                if number % 1_000 == 0:
                    until(lambda: not workers.waiting)  # threads go to rest

        senders = [threading.Thread(target=submit, args=(start,)) for start in range(0, 40_000, 10_000)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert seen.over.wait(PATIENCE)
    assert sorted(seen.tasks) == list(range(40_000))


def test_what_a_task_raises_is_logged_and_the_next_one_is_done(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(1)

    def run(task: int) -> None:
        if task == 0:
            raise SystemExit("no")
        seen(task)

    with started(Workers(run, 1, "t")) as workers:
        workers.submit([0, 1])
        assert seen.over.wait(PATIENCE)
    assert "0 failed" in caplog.text


def test_after_stop_nothing_is_begun() -> None:
    begun, goes_on, seen = threading.Event(), threading.Event(), Seen(1)

    def run(task: int) -> None:
        begun.set()
        goes_on.wait(PATIENCE)
        seen(task)

    workers: Workers[int] = Workers(run, 1, "t")
    workers.start()
    workers.submit(range(5))
    assert begun.wait(PATIENCE)
    assert not workers.stop(0.01)
    goes_on.set()
    assert workers.stop(PATIENCE)
    workers.submit([7])
    assert seen.tasks == [0]
