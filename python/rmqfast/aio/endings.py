"""What ends on other threads ends futures of an event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TypeVar

T = TypeVar("T")


class Endings:
    """Takes how things ended on any thread, and tells their futures on the loop's, as many at once as there are.

    A future that was cancelled meanwhile is told nothing; where the loop is closed, nobody is.

    Example:
        >>> import threading
        >>> async def main():
        ...     endings = Endings(asyncio.get_running_loop())
        ...     future = asyncio.get_running_loop().create_future()
        ...     threading.Thread(target=endings.end, args=(future, 7)).start()
        ...     return await future
        >>> asyncio.run(main())
        7
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ended: deque[tuple[asyncio.Future[object], object]] = deque()
        self._is_told = False

    def end(self, future: asyncio.Future[T], ended: T | BaseException) -> None:
        """Ends a future: with a result, or an error to be raised."""
        self._ended.append((future, ended))  # type: ignore[arg-type]  # a future takes what it is a future of
        if self._is_told:
            return
        self._is_told = True
        try:
            self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:  # the loop is closed, and whoever waited is gone with it
            self._is_told = False
            self._ended.clear()

    def _settle(self) -> None:
        # before the first look: what comes from now on tells the loop anew
        self._is_told = False
        for _ in range(len(self._ended)):
            future, ended = self._ended.popleft()
            if future.done():
                continue
            if isinstance(ended, BaseException):
                future.set_exception(ended)
            else:
                future.set_result(ended)
