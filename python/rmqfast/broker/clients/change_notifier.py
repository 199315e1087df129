"""Notifies clients that their group changed: a small group at once, a large one once for many changes.

Source: RocketMQ's `DefaultConsumerIdsChangeListener`.
"""

from __future__ import annotations

from rmqfast.broker.clients.client_channel import GroupChange
from rmqfast.threads import new_lock

#: Clients of a group that are notified of every single change.
AT_ONCE = 64


class ChangeNotifier:
    """Sends the notices of changed groups: those of large groups together.

    Where thousands of clients of one group connect, each of them is a change of which all are notified: millions of
    notices, and each one only says that it is time to look. Those of a large group wait for `run_once`, which sends
    the last one.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._delayed: dict[str, GroupChange] = {}

    def take(self, change: GroupChange) -> None:
        """Sends a notice, or keeps it in place of an older one of its group."""
        with self._lock:
            if len(change.channels) > AT_ONCE:
                self._delayed[change.group] = change
                return
            self._delayed.pop(change.group, None)
        change.notify()

    def run_once(self) -> None:
        """Sends the backlog; to be called a few times a second."""
        with self._lock:
            delayed, self._delayed = self._delayed, {}
        for change in delayed.values():
            change.notify()
