"""Runs the rebalance thread of a client instance.

Source: `RebalanceService`, `MQClientInstance.doRebalance`.
"""

from __future__ import annotations

import logging
import threading

from rmqfast.client.instance.members import Members

_log = logging.getLogger(__name__)


class RebalanceService:
    """Rebalances all consumers of an instance on one daemon thread."""

    def __init__(self, members: Members, interval: float) -> None:
        self._members, self._interval = members, interval
        self._due = threading.Event()
        self._is_stopped = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread; nothing if it runs."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rmqfast-rebalance", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """Rebalances all consumers soon; several calls at once become one rebalance."""
        self._due.set()

    def stop(self, timeout: float | None = None) -> bool:
        """Ends the thread, and waits for a rebalance in flight."""
        self._is_stopped = True
        self._due.set()
        if self._thread is None or self._thread is threading.current_thread():
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def rebalance(self) -> None:
        """Rebalances all consumers on the calling thread; failures are logged.

        Source: `MQClientInstance.doRebalance`.
        """
        for group, consumer in self._members.consumers().items():
            try:
                consumer.do_rebalance()
            except Exception:  # noqa: BLE001 - the other groups still need it
                _log.exception("group %s could not be rebalanced", group)

    def _run(self) -> None:
        while True:
            self._due.wait(self._interval)
            self._due.clear()
            if self._is_stopped:
                return
            self.rebalance()
