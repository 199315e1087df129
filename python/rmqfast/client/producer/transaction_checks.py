"""The thread on which brokers' questions about transactions are answered.

Source: `TransactionMQProducer.checkThreadPoolMinSize`, `DefaultMQProducerImpl.initTransactionEnv`.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)

#: Questions that may wait: `checkRequestHoldMax`.
MAX_WAITING = 2000
_END = None


class TransactionChecks:
    """A daemon thread that does one thing after the other; it starts with the first.

    Args:
        name: Of the thread.
        max_waiting: What may wait; more is dropped: the broker asks again.
    """

    def __init__(self, name: str, max_waiting: int = MAX_WAITING) -> None:
        self._name = name
        self._waiting: queue.Queue[Callable[[], object] | None] = queue.Queue(max_waiting)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def submit(self, work: Callable[[], object]) -> bool:
        """Has something done soon; whether there was room for it."""
        with self._lock:
            if self._is_closed:
                return False
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait(work)
        except queue.Full:
            return False
        return True

    def close(self, timeout: float) -> None:
        """Ends the thread; what waits is dropped.

        Args:
            timeout: How long to wait for what is being done, in seconds.
        """
        with self._lock:
            self._is_closed = True
            thread = self._thread
        if thread is None:
            return
        while not self._waiting.empty():
            try:
                self._waiting.get_nowait()
            except queue.Empty:
                break
        self._waiting.put(_END)
        if thread is not threading.current_thread():
            thread.join(timeout)

    def _run(self) -> None:
        while (work := self._waiting.get()) is not _END:
            try:
                work()
            except Exception:  # noqa: BLE001 - the next question has to be answered, too
                _log.exception("a broker's question about a transaction could not be answered")
            del work
