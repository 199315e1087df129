"""A process on a terminal of its own, as a person sees it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from tests.waiting import PATIENCE

#: Wide enough that no line is wrapped.
LINES, COLUMNS = 40, 200


class Terminal:
    """Keys for a process, and what it wrote.

    Attributes:
        process: The process.
    """

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self._unread = ""

    @classmethod
    @contextmanager
    def of(cls, command: Sequence[str], env: Mapping[str, str]) -> Iterator[Self]:
        """A process that has a terminal; it is killed at the end of the block if it has not ended."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (LINES, COLUMNS))
        settings = {"TERM": "xterm", **env}
        with subprocess.Popen(
            ["setsid", "--ctty", *command], env=settings, stdin=theirs, stdout=theirs, stderr=theirs
        ) as process:
            os.close(theirs)
            try:
                yield cls(process, ours)
            finally:
                process.kill()
                os.close(ours)

    def type(self, keys: str) -> None:
        """Types; `\\x03` is Ctrl-C."""
        os.write(self._descriptor, keys.encode())

    def read_until(self, text: str) -> str:
        """What was written up to a text, and the text; what is behind it is read by the next call.

        Raises:
            AssertionError: It was not written.
        """
        while text not in self._unread:
            piece = self._read()
            assert piece, f"{text!r} was not written, but {self._unread!r}"
            self._unread += piece
        end = self._unread.index(text) + len(text)
        read, self._unread = self._unread[:end], self._unread[end:]
        return read

    def read_to_end(self) -> str:
        """What is written until nobody has the terminal any more."""
        while piece := self._read():
            self._unread += piece
        return self._unread

    def _read(self) -> str:
        """What comes next; nothing once nobody has the other end, which Linux says by EIO, or patience ended."""
        if not select.select([self._descriptor], [], [], PATIENCE)[0]:
            return ""
        try:
            return os.read(self._descriptor, 4096).decode(errors="replace")
        except OSError:
            return ""
