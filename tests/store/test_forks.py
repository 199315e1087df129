"""What a process has opened is of no use in its forks, and of the same use as before to itself."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import rmqfast
from rmqfast import Message, WritableStore
from rmqfast.errors import ForkError
from tests.store.test_append import TINY

CALLS: dict[str, Callable[[WritableStore], Callable[[], object]]] = {
    "append": lambda store: partial(store.append, Message("T", b"")),
    "live": lambda store: partial(store.live.queue_bounds, "T", 0),
    "scan": lambda store: partial(next, store.scan("T").batches()),
    "tail": lambda store: store.tail("T").poll,
}


def tell(call: Callable[[], object], answers: Connection) -> None:
    try:
        call()
    except ForkError as error:
        answers.send(str(error))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("made", CALLS.values(), ids=CALLS)
def test_a_fork_may_not_use_what_its_parent_opened(
    tmp_path: Path, made: Callable[[WritableStore], Callable[[], object]]
) -> None:
    with rmqfast.open_store(tmp_path / "s", mode="a", options=TINY) as store:
        store.append(Message("T", b""))
        answers, end_of_fork = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(target=tell, args=(made(store), end_of_fork))
        child.start()
        end_of_fork.close()
        assert f"process {os.getpid()}" in answers.recv()
        child.join()
        assert (tmp_path / "s" / "abort").exists()
        assert store.append(Message("T", b"")).queue_offset == 1
