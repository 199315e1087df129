"""Prepares the standard streams, which may be closed, full, or unable to encode a character."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from rmqfast.errors import RmqError

_CANNOT_WRITE = 3
# Errors of writing; any other error must not be reported as one of standard output.
_OF_OUTPUT = frozenset({errno.EPIPE, errno.EBADF, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


@contextmanager
def standard_streams() -> Iterator[None]:
    """Prepares the streams for a command. Ends the command if standard output cannot be written.

    Raises:
        SystemExit: 0 if the reader of standard output is gone, 3 if it cannot be written.
    """
    _open_closed()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # The terminal's encoding may lack a character of a topic, a key or a body.
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # after the interpreter's end, a closed pipe could not be handled
    except OSError as error:
        # Errors of other files carry a file name.
        if isinstance(error, RmqError) or error.filename is not None or error.errno not in _OF_OUTPUT:
            raise
        discard_output()
        if error.errno == errno.EPIPE:
            raise SystemExit(0) from None  # the reader had enough
        print(f"error: standard output: {error.strerror}", file=sys.stderr)
        raise SystemExit(_CANNOT_WRITE) from None


def discard_output() -> None:
    """Discards output that was not written. The interpreter would otherwise try to write it at its end."""
    with suppress(io.UnsupportedOperation):  # only in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def data_output() -> TextIO:
    """Returns standard output for data. Its encoding is UTF-8, whatever the terminal uses."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() not in {"utf-8", "utf8"}:
        sys.stdout.reconfigure(encoding="utf-8")
    return sys.stdout


def _open_closed() -> None:
    """Replaces closed streams by streams whose use fails. Otherwise the next opened file would become a stream."""
    # Opened for the opposite direction, so that any use of the stream raises an error.
    for number, (name, flags, mode) in enumerate(
        (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))
    ):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            raw = io.FileIO(number, mode, closefd=False)
            buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
            setattr(sys, name, io.TextIOWrapper(buffer, encoding="utf-8"))
