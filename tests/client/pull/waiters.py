"""Threads that wait in a blocking call, and how Ctrl-C comes to them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rmqfast.client.instance.broker_requests import thread_frames
from tests.waiting import PATIENCE, until


@contextmanager
def behind_a_wait(act: Callable[[], object], within: str = "wait") -> Iterator[None]:
    """Has `act` called on another thread, once the one that runs the block is in a function that waits."""
    waits, begins = threading.get_ident(), threading.Event()
    stat = Path(f"/proc/self/task/{threading.get_native_id()}/stat")

    def is_waiting() -> bool:
        # A thread that gave up the interpreter's lock is not asleep yet: a signal in between would not end its wait.
        is_asleep = stat.read_text().rpartition(")")[2].split()[0] == "S"
        return thread_frames()[waits].f_code.co_name == within and is_asleep

    def wait_and_act() -> None:
        begins.wait()  # the start of a thread is a wait, too
        until(is_waiting)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    begins.set()
    try:
        yield
    finally:
        thread.join(PATIENCE)


def check_ends_by_ctrl_c(wait: Callable[[], object], within: str = "wait") -> None:
    """Fails unless a call that waits ends because of Ctrl-C, which comes once it does."""
    with behind_a_wait(lambda: os.kill(os.getpid(), signal.SIGINT), within), pytest.raises(KeyboardInterrupt):
        wait()
