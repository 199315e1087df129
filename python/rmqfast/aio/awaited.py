"""A method of a blocking client as one that is awaited: the same name, the same parameters.

The clients of asyncio list their methods by it, so that type checkers and editors know the parameters, and nobody has
to write them twice. What has its own code there says by `as_of` and `made_as` whose parameters and words it has.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, Generic, Never, ParamSpec, TypeVar

from rmqfast.aio.calls import Called

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


def awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The method of an asyncio client that has its twin do `method`, on one of the client's threads.

    Whoever is cancelled while it waits is told so at once; what was asked for may be done nevertheless.

    Args:
        method: A method of the blocking client.

    Example:
        >>> import asyncio
        >>> from types import SimpleNamespace
        >>> class Clock:
        ...     def wait(self, seconds: float = 0.0) -> str:
        ...         return f"waited {seconds} s"
        >>> class AsyncClock:
        ...     wait = awaited(Clock.wait)
        ...     _twin, _calls = Clock(), SimpleNamespace(ask=asyncio.to_thread)
        >>> asyncio.run(AsyncClock().wait(0.5))
        'waited 0.5 s'
    """
    name = method.__name__

    async def call(self: Called, /, *args: P.args, **named: P.kwargs) -> T:
        # by its name: the twin may be of a class that does it otherwise
        result: T = await self._calls.ask(getattr(self._twin, name), *args, **named)
        return result

    update_wrapper(call, method)
    call.__doc__ = f"Awaited; of the blocking `{method.__qualname__}`:\n\n{inspect.getdoc(method)}"
    return call


def as_of(method: Callable[..., Any]) -> Callable[[F], F]:
    """Has a method of an asyncio client described as that of the blocking client, behind what it says itself."""

    def described(own: F) -> F:
        own.__doc__ = f"{inspect.getdoc(own)}\n\nOf the blocking `{method.__qualname__}`:\n\n{_without_example(method)}"
        return own

    return described


def made_as(client: Callable[P, Any]) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Gives the constructor of an asyncio client the parameters of the blocking client."""

    def made(init: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        return update_wrapper(init, client.__init__)

    return made


class Shown(property, Generic[T]):
    """A property of the blocking client that an asyncio client has, too; it does not wait.

    Args:
        client: The class of the blocking client.
        get: Gives the value that a client of that class has.

    Example:
        >>> class Clock:
        ...     @property
        ...     def zone(self) -> str:
        ...         "Where it shows the time of."
        ...         return "UTC"
        >>> class AsyncClock:
        ...     zone = Shown(Clock, lambda clock: clock.zone)
        ...     _twin = Clock()
        >>> AsyncClock().zone, AsyncClock.__dict__["zone"].__doc__
        ('UTC', 'Where it shows the time of.')
    """

    def __init__(self, client: type[C], get: Callable[[C], T]) -> None:
        super().__init__(lambda self: get(self._twin))
        self._client = client

    def __set_name__(self, owner: type, name: str) -> None:
        self.__doc__ = inspect.getdoc(getattr(self._client, name))

    def __get__(self, own: Any, owner: type | None = None, /) -> T:  # type: ignore[override]  # of an instance
        value: T = super().__get__(own, owner)
        return value

    def __set__(self, own: Any, value: Never, /) -> None:
        super().__set__(own, value)


def _without_example(method: Callable[..., Any]) -> str:
    """What a method's docstring says; its example is of a client that is not awaited."""
    return re.sub(r"Example:\n(?: +.*\n|\n)*", "", f"{inspect.getdoc(method)}\n").rstrip()
