"""Warns if a client was dropped while it was running."""

from __future__ import annotations

import os
import sys
import warnings

_OWNED = "_is_owned"


def warn_unclosed(client: object, pid: int, named: str, step: str = "shutdown()") -> None:
    """Warns of a client that is dropped but still runs. Called by `__del__`; silent in forks and when Python ends."""
    if os.getpid() == pid and not sys.is_finalizing() and _OWNED not in vars(client):
        text = f"{named} was dropped and runs on: call {step}, or use it as a context manager"
        warnings.warn(text, ResourceWarning, source=client, stacklevel=2)


def leave_warning_to_owner(client: object) -> None:
    """Suppresses the warning for a client that belongs to another client, since that one warns."""
    vars(client)[_OWNED] = True
