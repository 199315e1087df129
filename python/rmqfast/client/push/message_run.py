"""The messages of one pull, of which any may be done before others."""

from __future__ import annotations

from collections.abc import Sequence

from rmqfast._native import MessageView


class MessageRun:
    """Messages of a queue, by ascending offset; what is done is marked, and all of them are let go together.

    Knows no lock: its `ProcessQueue` has one.

    Args:
        messages: Not empty.
        size: Bytes that they take.

    Attributes:
        messages: The messages; empty once all are done.
        size: Bytes that they take; 0 once all are done.
        left: How many are not done.
    """

    __slots__ = ("_done", "_first", "left", "messages", "size")

    def __init__(self, messages: Sequence[MessageView], size: int = 0) -> None:
        self.messages = tuple(messages)
        self.size = size
        self.left = len(self.messages)
        self._done = bytearray(self.left)
        self._first = 0

    def finish(self, indexes: Sequence[int]) -> int:
        """Marks messages as done; how many of them were not done before."""
        done, count = self._done, 0
        if isinstance(indexes, range) and len(indexes) > 1:
            start, stop = indexes.start, indexes.stop
            count = done.count(0, start, stop)
            done[start:stop] = b"\x01" * (stop - start)
        else:
            for index in indexes:
                if not done[index]:
                    done[index] = 1
                    count += 1
        self.left -= count
        if not self.left:
            self.messages = ()
        elif done[self._first]:
            self._first = done.find(0, self._first)
        return count

    def is_done(self, index: int) -> bool:
        """Whether a message is done."""
        return bool(self._done[index])

    @property
    def first(self) -> int:
        """The index of the first message that is not done, where there is one."""
        return self._first

    @property
    def first_offset(self) -> int:
        """The offset of the first message that is not done, where there is one."""
        return self.messages[self._first].queue_offset

    @property
    def last_offset(self) -> int:
        """The offset of the last message that is not done, where there is one."""
        return self.messages[self._done.rfind(0)].queue_offset
