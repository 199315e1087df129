"""The log of changes: who changed what, when, and how it ended."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rmqfast.logs import logger_of
from rmqfast.threads import new_lock

_log = logger_of(__name__)
#: Changes that a page shows, and forms that are known to have been sent.
_SHOWN, _SENT = 200, 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeEntry:
    """A change that somebody asked for on the pages.

    Attributes:
        timestamp: Time in milliseconds since 1970.
        visitor: Address of the browser.
        name: Kind of the change, as `reset`.
        values: What was filled in.
        is_done: Whether it was done.
        text: What it did, or why it failed.
    """

    timestamp: int
    visitor: str
    name: str
    values: Mapping[str, str]
    is_done: bool
    text: str

    def __str__(self) -> str:
        values = " ".join(f"{name}={value!r}" for name, value in self.values.items() if value)
        return f"{self.visitor} {self.name} {values}: {'done' if self.is_done else 'failed'}: {self.text}"


class ChangeLog:
    """Remembers the last changes, logs each, and tells it to a callback."""

    def __init__(self, on_change: Callable[[ChangeEntry], None] | None) -> None:
        self._on_change = on_change
        self._lock = new_lock()
        self._entries: deque[ChangeEntry] = deque(maxlen=_SHOWN)
        self._sent: deque[str] = deque(maxlen=_SENT)

    @property
    def entries(self) -> Sequence[ChangeEntry]:
        """The last changes, newest first."""
        with self._lock:
            return list(reversed(self._entries))

    def was_sent(self, number: str) -> bool:
        """Whether a form was sent before, as by a browser that loads a page again."""
        with self._lock:
            return number in self._sent

    def take_form(self, number: str) -> bool:
        """Notes that a form is sent. Returns whether it is the first time."""
        with self._lock:
            is_new = bool(number) and number not in self._sent
            if is_new:
                self._sent.append(number)
            return is_new

    def note(self, visitor: str, name: str, values: Mapping[str, str], *, is_done: bool, text: str) -> None:
        """Adds a change."""
        now = int(time.time() * 1000)
        entry = ChangeEntry(timestamp=now, visitor=visitor, name=name, values=dict(values), is_done=is_done, text=text)
        with self._lock:
            self._entries.append(entry)
        _log.warning("%s", entry)
        if self._on_change is not None:
            try:
                self._on_change(entry)
            except Exception:  # noqa: BLE001  # the change is made, and its page must tell so
                _log.exception("on_change failed for a change: %s", entry)
