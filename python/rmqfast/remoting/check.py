"""What is asked before a request is answered."""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.remoting.request import Request

__all__ = ["Check", "all_of"]

#: Raises `ResponseError` for a request that is not allowed.
Check = Callable[[Request], None]


def all_of(*checks: Check | None) -> Check | None:
    """A check that makes all of them, one after the other; None where there is none."""
    present = [check for check in checks if check is not None]

    def check(request: Request) -> None:
        for each in present:
            each(request)

    return check if present else None
