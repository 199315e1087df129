"""Traces that go into one message.

Source: `AsyncTraceDispatcher.TraceDataSegment`.
"""

from __future__ import annotations

from collections.abc import Iterable

from rmqfast.client.trace.trace_data import TraceData

#: Bytes of a body at most: Java sends what has just become larger, and its own producer refuses it.
MOST_BYTES = 118_000
#: Bytes of all keys; a broker takes 32,767 of properties, and Java's dispatcher does not look.
MOST_KEY_BYTES = 30_000


class TraceSegment:
    """Traces that wait to be sent together.

    Attributes:
        since: When the first of them came; `None` where there is none.

    Example:
        >>> segment = TraceSegment()
        >>> segment.add(TraceData("Pub", frozenset({"a", "b"})), 1.0)
        >>> segment.has_room(TraceData("x" * 118_000, frozenset()))
        False
        >>> segment.take(), segment.since
        ((b'Pub', ['a', 'b']), None)
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._keys: set[str] = set()
        self._size = self._key_size = 0
        self.since: float | None = None

    def has_room(self, data: TraceData) -> bool:
        """Whether a trace fits in; into an empty one any does."""
        if not self._parts:
            return True
        fits = self._size + len(data.text.encode("utf-8", "replace")) <= MOST_BYTES
        return fits and self._key_size + sum(map(_key_size, data.keys - self._keys)) <= MOST_KEY_BYTES

    def add(self, data: TraceData, now: float) -> None:
        """One more."""
        part = data.text.encode("utf-8", "replace")
        self._parts.append(part)
        self._size += len(part)
        new = data.keys - self._keys
        self._keys |= new
        self._key_size += sum(map(_key_size, new))
        self.since = now if self.since is None else self.since

    def take(self) -> tuple[bytes, list[str]]:
        """Body and keys of a message with all of them; nothing waits then."""
        taken = b"".join(self._parts), list(_fitting(self._keys))
        self._parts, self._keys, self._size, self._key_size, self.since = [], set(), 0, 0, None
        return taken


def _fitting(keys: Iterable[str]) -> Iterable[str]:
    """Keys, the shortest first, as long as there is room: ids are short, those of a large batch in one are not."""
    size = 0
    for key in sorted(keys, key=lambda key: (len(key), key)):
        size += _key_size(key)
        if size > MOST_KEY_BYTES:
            return
        yield key


def _key_size(key: str) -> int:
    return len(key.encode("utf-8", "replace")) + 1
