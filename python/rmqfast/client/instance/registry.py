"""The client instances of this process, by client id.

Source: `MQClientManager`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Registry(Generic[_T]):
    """Shared things by name, with how many share each.

    Example:
        >>> registry = Registry[list[int]]()
        >>> registry.take("a", list) is registry.take("a", list)
        True
        >>> registry.give_back("a"), registry.give_back("a")
        (False, True)
    """

    def __init__(self) -> None:
        self._clear()
        os.register_at_fork(after_in_child=self._clear)

    def take(self, name: str, make: Callable[[], _T]) -> _T:
        """The thing of that name, made if there is none; has one more user.

        Source: `MQClientManager.getOrCreateMQClientInstance`.
        """
        with self._lock:
            thing, users = self._things.get(name) or (make(), 0)
            self._things[name] = (thing, users + 1)
            return thing

    def give_back(self, name: str) -> bool:
        """One user less; whether it was the last one, so that the thing is known no more.

        Source: `MQClientManager.removeClientFactory`.
        """
        with self._lock:
            found = self._things.get(name)
            if found is None:
                return False
            thing, users = found
            if users > 1:
                self._things[name] = (thing, users - 1)
            else:
                del self._things[name]
            return users <= 1

    def _clear(self) -> None:
        """A fork has none of its parent's threads, and so none of its instances; nor does it own its locks."""
        self._lock = threading.Lock()
        self._things: dict[str, tuple[_T, int]] = {}
