"""Both faces of `Admin` as one: a test calls what is awaited as it calls what blocks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, cast

from rmqfast import aio
from rmqfast.admin import Admin

FACES = ("blocking", "asyncio")


class _Awaited:
    """An asyncio client, or one of its subjects, whose methods run on a loop until they end."""

    def __init__(self, target: Any, loop: asyncio.Runner) -> None:
        self._target, self._loop = target, loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not inspect.iscoroutinefunction(value):
            return _Awaited(value, self._loop)
        return lambda *args, **named: self._loop.run(value(*args, **named))

    def __enter__(self) -> Self:
        self._loop.run(self._target.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.run(self._target.__aexit__(*error))


@contextmanager
def made(face: str, name_server: str | None = None) -> Iterator[Admin]:
    """An `Admin` that is not started.

    Args:
        face: One of `FACES`.
        name_server: Where the cluster is.
    """
    if face == "blocking":
        yield Admin(name_server=name_server)
        return
    with asyncio.Runner() as loop:
        yield cast(Admin, _Awaited(aio.Admin(name_server=name_server), loop))
