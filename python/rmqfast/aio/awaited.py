"""A method of a blocking client as one that is awaited: the same name, the same parameters.

The clients of asyncio list their methods by it, so that type checkers and editors know the parameters, and nobody has
to write them twice. What has its own code there says by `as_of` and `made_as` whose parameters and words it has.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Asks(Protocol):
    """Has a blocking twin, and threads that ask it."""

    @property
    def _twin(self) -> Any:
        """What is asked."""

    def _ask(self, work: Callable[..., Any], *args: Any, **named: Any) -> Awaitable[Any]:
        """Does work on a thread."""


def awaited(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The method of an asyncio client that has its twin do `method`, on one of the client's threads.

    Whoever is cancelled while it waits is told so at once; what was asked for may be done nevertheless.

    Args:
        method: A method of the blocking client.

    Example:
        >>> import asyncio
        >>> class Clock:
        ...     def wait(self, seconds: float = 0.0) -> str:
        ...         return f"waited {seconds} s"
        >>> class AsyncClock:
        ...     wait = awaited(Clock.wait)
        ...     _twin = Clock()
        ...
        ...     async def _ask(self, work, *args, **named):
        ...         return await asyncio.to_thread(work, *args, **named)
        >>> asyncio.run(AsyncClock().wait(0.5))
        'waited 0.5 s'
    """
    name = method.__name__

    async def call(self: Asks, /, *args: P.args, **named: P.kwargs) -> T:
        # by its name: the twin may be of a class that does it otherwise
        result: T = await self._ask(getattr(self._twin, name), *args, **named)
        return result

    update_wrapper(call, method)
    call.__doc__ = f"Awaited; of the blocking `{method.__qualname__}`:\n\n{inspect.getdoc(method)}"
    return call


def as_of(method: Callable[..., Any]) -> Callable[[F], F]:
    """Has a method of an asyncio client described as that of the blocking client, behind what it says itself.

    Args:
        method: The method of the blocking client.
    """

    def described(own: F) -> F:
        own.__doc__ = f"{inspect.getdoc(own)}\n\nOf the blocking `{method.__qualname__}`:\n\n{_without_example(method)}"
        return own

    return described


def made_as(client: Callable[P, Any]) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Gives the constructor of an asyncio client the parameters of the blocking client.

    Args:
        client: The class of the blocking client.
    """

    def made(init: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        return update_wrapper(init, client.__init__)

    return made


def _without_example(method: Callable[..., Any]) -> str:
    """What a method's docstring says; its example is of a client that is not awaited."""
    return re.sub(r"Example:\n(?: +.*\n|\n)*", "", f"{inspect.getdoc(method)}\n").rstrip()
