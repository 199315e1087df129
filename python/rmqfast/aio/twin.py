"""Builds the methods of asyncio clients from the methods of blocking clients, with the same names and parameters.

Type checkers and editors know the parameters without a second declaration.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, Generic, Never, ParamSpec, TypeVar

from rmqfast.aio.calls import HasTwin

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


def awaitable(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Returns an asyncio method that calls a blocking method on a thread of the client.

    A cancelled task stops waiting at once, but the call may still complete.
    """
    name = method.__name__

    async def call(self: HasTwin, /, *args: P.args, **named: P.kwargs) -> T:
        # by its name: a subclass of the twin may override the method
        result: T = await self._calls.ask(getattr(self._twin, name), *args, **named)
        return result

    update_wrapper(call, method)
    call.__doc__ = f"Awaited; of the blocking `{method.__qualname__}`:\n\n{inspect.getdoc(method)}"
    return call


def documented_like(method: Callable[..., Any]) -> Callable[[F], F]:
    """Returns a decorator that adds a blocking method's docstring, without its example, to an asyncio method."""
    blocking = re.sub(r"Example:\n(?: +.*\n|\n)*", "", f"{inspect.getdoc(method)}\n").rstrip()

    def document(own: F) -> F:
        own.__doc__ = f"{inspect.getdoc(own)}\n\nOf the blocking `{method.__qualname__}`:\n\n{blocking}"
        return own

    return document


def with_signature_of(client: Callable[P, Any]) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Returns a decorator that gives an asyncio client's constructor the parameters of the blocking client's."""

    def decorate(init: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        return update_wrapper(init, client.__init__)

    return decorate


class ForwardedProperty(property, Generic[T]):
    """A property that returns the blocking client's value without waiting."""

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
