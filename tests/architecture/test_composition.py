"""No class is cut by inheritance: of ours, a class has at most one base that is a class of ours."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterable
from importlib import import_module

import rmqfast


def is_ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] in {"rmqfast", __name__.split(".")[0]}


def deep(kinds: Iterable[type]) -> set[str]:
    """The classes that have two bases of ours or more.

    Errors, which form a tree, do not count; nor do bases that are abstract or protocols, which are interfaces.
    """
    return {
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in kinds
        if not issubclass(kind, BaseException)
        and sum(is_ours(base) and not _is_interface(base) for base in kind.__mro__[1:]) > 1
    }


def _is_interface(kind: type) -> bool:
    return inspect.isabstract(kind) or bool(getattr(kind, "_is_protocol", False))


def classes_of_the_package() -> set[type]:
    names = [each.name for each in pkgutil.walk_packages(rmqfast.__path__, "rmqfast.")]
    modules = [import_module(name) for name in names if not name.endswith("__main__")]
    members = (member for module in modules for member in vars(module).values())
    return {member for member in members if inspect.isclass(member) and is_ours(member)}


def test_no_class_is_cut_by_inheritance() -> None:
    assert not deep(classes_of_the_package()), "compose: give each job an object"


def test_a_class_that_is_cut_is_found() -> None:
    class Lookups:
        """One part."""

    class Exports(Lookups):
        """Another one."""

    class Store(Exports):
        """The class that both were cut from."""

    assert deep([Lookups, Exports, Store]) == {f"{__name__}.{Store.__qualname__}"}
