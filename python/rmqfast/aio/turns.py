"""Limits how many sends start in one iteration of an event loop, so that other tasks run in between."""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Lets up to `most` tasks continue per iteration of the loop. Others wait for later iterations, in order."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_next_due = False

    async def take(self) -> None:
        """Waits until an iteration of the loop has room."""
        loop = asyncio.get_running_loop()
        if not self._is_next_due:
            self._is_next_due = True
            # runs in the next iteration of the loop
            loop.call_soon(self._next)
        if self._left > 0:
            self._left -= 1
            return
        waiting: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiting)
        await waiting

    def _next(self) -> None:
        self._left = self._most
        while self._waiting and self._left > 0:
            waiting = self._waiting.popleft()
            # a cancelled waiter is done
            if not waiting.done():
                waiting.set_result(None)
                self._left -= 1
        # stops when nothing started in this iteration
        self._is_next_due = self._left < self._most
        if self._is_next_due:
            asyncio.get_running_loop().call_soon(self._next)
