"""What clients say in a fork of their process."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable

from rmqfast.errors import ForkError
from tests.waiting import PATIENCE


def refused_in_a_fork(use: Callable[[], object], end: Callable[[], object] = lambda: None) -> str:
    """How a client's `use` is refused in a fork, which calls `end` then; nothing where it is not refused."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        try:
            use()
        except ForkError as error:
            end()
            sender.send(str(error))
        else:
            sender.send("")

    process = context.Process(target=child)
    process.start()
    assert receiver.poll(PATIENCE)
    said = receiver.recv()
    process.join(PATIENCE)
    assert process.exitcode == 0
    assert isinstance(said, str)
    return said
