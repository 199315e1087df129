"""Where a consumer keeps how far it is in each queue.

Source: `OffsetStore`, `ReadOffsetType`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Protocol

from rmqfast.message import MessageQueue

#: There is no offset.
NO_OFFSET = -1
#: Nobody could be asked.
UNREACHABLE = -2


class ReadOffsetType(Enum):
    """Where an offset is looked for."""

    READ_FROM_MEMORY = "READ_FROM_MEMORY"
    READ_FROM_STORE = "READ_FROM_STORE"
    MEMORY_FIRST_THEN_STORE = "MEMORY_FIRST_THEN_STORE"


class OffsetStore(Protocol):
    """The offsets of one group, as its member sees them."""

    def load(self) -> None:
        """Reads what is kept on this machine."""

    def update_offset(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """Notes in memory where to go on; with `increase_only` never before where it is."""

    def read_offset(self, queue: MessageQueue, kind: ReadOffsetType) -> int:
        """Where to go on: `NO_OFFSET` where nobody knows, `UNREACHABLE` where the broker does not answer."""

    def persist(self, queue: MessageQueue) -> None:
        """Stores the offset of one queue."""

    def persist_all(self, queues: Iterable[MessageQueue]) -> None:
        """Stores the offsets of these queues, and forgets those of others."""

    def remove_offset(self, queue: MessageQueue) -> None:
        """Forgets what is in memory of a queue."""

    def clone(self, topic: str | None = None) -> dict[MessageQueue, int]:
        """What is in memory, of one topic or of all."""

    def update_to_broker(self, queue: MessageQueue, offset: int, *, oneway: bool = True) -> None:
        """Tells the broker an offset, whatever is in memory."""


class OffsetTable:
    """Offsets in memory, by queue; threads may share it."""

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}
        self._lock = threading.Lock()

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        """Notes an offset; with `increase_only` the greater one stays."""
        with self._lock:  # several threads consume one queue's messages
            known = self._offsets.get(queue)
            if known is None or offset > known or not increase_only:
                self._offsets[queue] = offset

    def get(self, queue: MessageQueue) -> int | None:
        """The offset of a queue."""
        return self._offsets.get(queue)

    def put_all(self, offsets: dict[MessageQueue, int]) -> None:
        """Takes what was read from a file."""
        with self._lock:
            self._offsets.update(offsets)

    def remove(self, queue: MessageQueue) -> None:
        """Forgets a queue."""
        self._offsets.pop(queue, None)

    def forget(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Forgets queues, but for those whose offset is another by now: somebody has taken them meanwhile."""
        with self._lock:
            for queue, offset in offsets.items():
                if self._offsets.get(queue) == offset:
                    del self._offsets[queue]

    def clone(self, topic: str | None = None) -> dict[MessageQueue, int]:
        """A copy, of one topic or of all."""
        return {queue: offset for queue, offset in self._offsets.copy().items() if topic in {None, queue.topic}}
