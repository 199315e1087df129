"""Ctrl-C that comes while native code works, at an instant that the test says."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from operator import methodcaller

import pyarrow as pa
import pytest

#: Seconds after which native code that was busy meanwhile looks for Ctrl-C (`Signals::INTERVAL`).
INTERVAL = 0.05
_send_ctrl_c = partial(ctypes.CDLL(None)["raise"], int(signal.SIGINT))


def check_ends_by_ctrl_c(action: Callable[[], object]) -> None:
    """Fails unless `action`, which has no Python in it, ends because of a Ctrl-C that came just before it.

    Python itself looks for signals between two of its instructions. Here is none: `list` calls one after the other.
    """
    returned: list[None] = []
    # Arrow raises its own error; what would suppress it is Python, which looks
    with pytest.raises(KeyboardInterrupt), suppress(pa.ArrowException):
        list(map(methodcaller("__call__"), [_send_ctrl_c, action, partial(returned.append, None)]))
    assert returned == [], "it went on to its end"
