"""Marks classes whose objects cannot be pickled or copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

__all__ = ["not_picklable"]

T = TypeVar("T")


def not_picklable(advice: str) -> Callable[[type[T]], type[T]]:
    """Makes `pickle`, `copy` and `deepcopy` refuse objects of a class that hold files, threads or connections."""

    def decorate(kind: type[T]) -> type[T]:
        def refuse(self: T, _protocol: object = 0) -> NoReturn:
            held = f"a {type(self).__name__}, which holds files, threads or connections"
            raise TypeError(f"cannot pickle or copy {held}: {advice}")

        kind.__reduce_ex__ = refuse  # type: ignore[assignment]
        kind.__reduce__ = refuse  # type: ignore[assignment]
        return kind

    return decorate
