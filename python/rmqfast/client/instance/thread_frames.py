"""Returns the stacks of this process's threads.

Source: `UtilAll`.
"""

from __future__ import annotations

import gc
import sys
from types import FrameType


def thread_frames() -> dict[int, FrameType]:
    """Returns the current frame of each thread, by thread id."""
    was_enabled = gc.isenabled()
    # The call allocates objects while it holds the lock of all thread states. Before Python 3.11.9 this may start a
    # garbage collection, which may switch to a thread that waits for the same lock: a deadlock of the whole process.
    # https://github.com/python/cpython/issues/106883
    gc.disable()
    try:
        return sys._current_frames()  # noqa: SLF001 - there is no other way
    finally:
        if was_enabled:
            gc.enable()
