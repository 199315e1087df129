"""How tests wait: until something is true, never for time to pass.

Each function gives up after `PATIENCE` seconds. That is far longer than any machine needs, so a test that gives up has
found something that does not happen, not a machine that is busy.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

#: Seconds after which a wait has failed.
PATIENCE = 60.0
#: Seconds between two looks: short, as most conditions come true within milliseconds.
_INTERVAL = 0.005


def until(condition: Callable[[], T], what: Callable[[], object] | str = "", *, patience: float = PATIENCE) -> T:
    """Waits until a condition is true, and returns what it gave.

    Args:
        condition: Called again and again.
        what: Describes what was waited for, or a function that does when the wait has failed.
        patience: Seconds after which the wait has failed; longer only for what starts programs or stops them.

    Raises:
        AssertionError: The condition did not become true.
    """
    deadline = time.monotonic() + patience
    while not (value := condition()):
        _check(deadline, patience, condition, what)
        time.sleep(_INTERVAL)
    return value


async def until_async(
    condition: Callable[[], T], what: Callable[[], object] | str = "", *, patience: float = PATIENCE
) -> T:
    """Does what `until` does, and lets the event loop run meanwhile."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        _check(deadline, patience, condition, what)
        await asyncio.sleep(_INTERVAL)
    return value


def collect(receive: Callable[[], Iterable[T]], count: int, *, patience: float = PATIENCE) -> list[T]:
    """Calls `receive` until it has returned `count` items or more; returns all of them.

    `receive` blocks until something is there or a moment has passed, as `poll(0.2)` does.

    Raises:
        AssertionError: Fewer items came.
    """
    items: list[T] = []

    def is_enough() -> bool:
        items.extend(receive())
        return len(items) >= count

    until(is_enough, lambda: f"{count} items, got {len(items)}: {items[-5:]}", patience=patience)
    return items


def _check(deadline: float, patience: float, condition: Callable[[], object], what: Callable[[], object] | str) -> None:
    if time.monotonic() > deadline:
        described = what() if callable(what) else what
        raise AssertionError(f"not true within {patience:g} s: {described or condition}")
