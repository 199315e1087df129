"""Stacks of the threads of this process."""

from __future__ import annotations

import gc
import sys
from types import FrameType

__all__ = ["thread_frames"]


def thread_frames() -> dict[int, FrameType]:
    """The frame in which each thread is, by its ident."""
    was_enabled = gc.isenabled()
    # The call makes objects while it holds the lock of all threads' states. Before Python 3.11.9 a collection may begin
    # then, and hand the interpreter to a thread that waits for that lock: both stand still, and so does everybody else.
    # https://github.com/python/cpython/issues/106883
    gc.disable()
    try:
        return sys._current_frames()  # noqa: SLF001 - there is no other way
    finally:
        if was_enabled:
            gc.enable()
