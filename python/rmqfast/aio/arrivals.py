"""Word that something came, from any thread to the tasks of a loop."""

from __future__ import annotations

import asyncio


class Arrivals:
    """Wakes the tasks that wait; whoever is about to wait listens first, then looks, and then waits.

    Example:
        >>> import threading
        >>> async def main():
        ...     arrivals, loop = Arrivals(), asyncio.get_running_loop()
        ...     arrivals.listen(loop)
        ...     threading.Timer(0.01, arrivals.tell).start()
        ...     return await arrivals.wait(loop.time() + 10)
        >>> asyncio.run(main())
        True
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_told = True

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Waits for what comes from now on."""
        self._loop = loop
        self._event.clear()
        self._is_told = False

    def tell(self) -> None:
        """Something came; on any thread."""
        if self._is_told or self._loop is None:
            return
        self._is_told = True
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:
            return  # the loop is closed, and nobody waits

    async def wait(self, deadline: float) -> bool:
        """Waits until something came after `listen`; whether it did, before `deadline` by the loop's time."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._event.wait()
        except TimeoutError:
            return False
        return True
