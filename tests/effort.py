"""How much of a thing is tried: enough to find a defect in `make test-long`, or what the documents speak of."""

from __future__ import annotations

import os

FULL = os.environ.get("RMQFAST_FULL", "0") != "0"


def effort(name: str, usual: int, full: int) -> int:
    """As many as the variable `name` says; without it `usual`, or `full` where RMQFAST_FULL=1."""
    return int(os.environ.get(name, full if FULL else usual))
