"""How a command ends that goes on until somebody ends it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["ended_by_signals"]


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the command with 0, once what runs in the block has shut down."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
    finally:
        signal.signal(signal.SIGTERM, before)
