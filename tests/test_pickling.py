"""Every public value and error comes out of a pickle, and of a copy, equal; what holds files or connections refuses."""

from __future__ import annotations

import copy
import dataclasses
import enum
import inspect
import pickle
import pkgutil
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import rmqfast
from rmqfast import Message, MessageCluster, MessageView, errors
from rmqfast.store import (
    ConsumerFilterTable,
    ConsumerOffsetTable,
    DelayOffsetTable,
    Scan,
    ScanDataset,
    SubscriptionGroupTable,
    TopicConfigTable,
)

#: Modules whose plain classes are what users work with: each of them refuses, or is named below.
FACES = {
    "rmqfast",
    "rmqfast.admin",
    "rmqfast.aio",
    "rmqfast.embedded",
    "rmqfast.mirror",
    "rmqfast.slave",
    "rmqfast.store",
}
#: Their plain classes that are values, which have a test each.
PLAIN_VALUES: set[type] = {
    # tests/cluster/test_cluster_arguments.py
    MessageCluster,
    MessageView,
    TopicConfigTable,
    SubscriptionGroupTable,
    ConsumerOffsetTable,
    DelayOffsetTable,
    ConsumerFilterTable,
    # tests/store/test_scan_values.py
    Scan,
    ScanDataset,
}
#: The parts of clients that are handed to what a user extends: they stay in their process.
BOUND_TO_A_CLIENT = {"Handle", "Request"}
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)
WAYS: list[tuple[str, Callable[[Any], Any]]] = [
    *((f"pickle-{p}", lambda value, p=p: pickle.loads(pickle.dumps(value, p))) for p in PROTOCOLS),  # noqa: S301
    ("copy", copy.copy),
    ("deepcopy", copy.deepcopy),
]
way = pytest.mark.parametrize("copied", [way for _, way in WAYS], ids=[name for name, _ in WAYS])


def public_classes(of: Callable[[str], bool]) -> dict[str, type]:
    """Classes that packages, and the modules beside this package's own, give to who imports them."""
    named = [each for each in pkgutil.walk_packages(rmqfast.__path__, "rmqfast.") if "_" not in each.name]
    names = ["rmqfast", *(each.name for each in named if each.ispkg or each.name.count(".") == 1)]
    classes = {}
    for module in map(import_module, filter(of, names)):
        for name in getattr(module, "__all__", None) or list(vars(module)):
            value = getattr(module, name)
            if inspect.isclass(value) and value.__module__.startswith("rmqfast") and "." not in value.__qualname__:
                classes[f"{value.__module__}.{value.__qualname__}"] = value
    return classes


def is_value(kind: type) -> bool:
    """Whether objects of a class are made of their fields alone."""
    has_fields = dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")
    return has_fields and not issubclass(kind, BaseException) and kind.__name__ not in BOUND_TO_A_CLIENT


def is_interface(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False)) or hasattr(kind, "__total__")


PUBLIC = public_classes(lambda _: True)
VALUES = {name: kind for name, kind in PUBLIC.items() if is_value(kind)}
ERRORS = {name: kind for name, kind in PUBLIC.items() if issubclass(kind, BaseException)}
ENUMS = {name: kind for name, kind in PUBLIC.items() if issubclass(kind, enum.Enum)}
HOLDERS = {
    name: kind
    for name, kind in public_classes(FACES.__contains__).items()
    if not is_interface(kind) and kind not in PLAIN_VALUES and name not in VALUES | ERRORS | ENUMS
}
_PLAIN: dict[Any, Any] = {
    str: "a",
    int: 7,
    float: 1.5,
    bool: True,
    bytes: b"\x00x",
    object: "o",
    Any: "any",
    Path: Path("p"),
    datetime: datetime(2026, 11, 28, tzinfo=UTC),
    type(None): None,
    MessageView: Message("t", b"x"),  # a view has a test of its own
}


def sample(kind: Any) -> Any:  # noqa: PLR0911 - one for each form of a type
    """A value of a type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, typing.TypeVar):
        return "of any type"
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        return sample(arguments[0])
    if origin is None:
        return next(iter(kind)) if issubclass(kind, enum.Enum) else made(kind)
    if origin is tuple:
        return tuple(sample(each) for each in arguments if each is not Ellipsis)
    if issubclass(origin, Mapping):
        return {sample(arguments[0]): sample(arguments[1])}
    if issubclass(origin, Iterable):
        return (list if origin is list else frozenset if issubclass(origin, typing.AbstractSet) else tuple)(
            [sample(arguments[0])]
        )
    return sorted  # a function, as pickle knows one


def made(kind: Any) -> Any:
    """An object of a value's class, with the fields that it needs."""
    if dataclasses.is_dataclass(kind):
        missing = dataclasses.MISSING
        named = [f.name for f in dataclasses.fields(kind) if f.init and f.default is f.default_factory is missing]
    else:
        named = list(kind._fields)
    hints = {} if kind.__name__ == "PullRequest" else typing.get_type_hints(kind)
    return kind(**{name: sample(hints.get(name, str)) for name in named})


def fields_of(value: Any) -> list[object]:
    return [
        getattr(value, name) for name in getattr(value, "_fields", None) or [f.name for f in dataclasses.fields(value)]
    ]


def sample_of_argument(parameter: inspect.Parameter) -> object:
    return 17 if "int" in str(parameter.annotation) else "what is wrong"


def test_the_walk_finds_what_users_have() -> None:
    names = {name.rpartition(".")[2] for name in PUBLIC}
    assert {each for each in rmqfast.__all__ if inspect.isclass(getattr(rmqfast, each))} <= names
    assert {each for each, kind in vars(errors).items() if inspect.isclass(kind)} >= {
        k.__name__ for k in ERRORS.values()
    }
    assert {"Message", "MessageExt", "ScanRequest", "ClientConfig", "SendResult"} <= {
        k.__name__ for k in VALUES.values()
    }


@way
@pytest.mark.parametrize("kind", VALUES.values(), ids=VALUES)
def test_a_value_comes_out_equal(kind: type, copied: Callable[[Any], Any]) -> None:
    value = made(kind)
    again = copied(value)
    assert (type(again), fields_of(again)) == (kind, fields_of(value))
    # some are equal by identity alone, as Java's are
    assert again == value or vars(object)["__eq__"] is kind.__eq__


@way
@pytest.mark.parametrize("kind", ENUMS.values(), ids=ENUMS)
def test_a_member_of_an_enum_comes_out_as_itself(kind: type[enum.Enum], copied: Callable[[Any], Any]) -> None:
    assert all(copied(member) is member for member in kind)


@way
@pytest.mark.parametrize("kind", ERRORS.values(), ids=ERRORS)
def test_an_error_comes_out_with_its_text_and_all_that_it_carries(kind: Any, copied: Callable[[Any], Any]) -> None:
    own = [each for each in kind.__mro__ if each.__module__ == "rmqfast.errors" and "__init__" in vars(each)]
    parameters = list(inspect.signature(own[0]).parameters.values()) if own else []
    error = kind(**{each.name: sample_of_argument(each) for each in parameters}) if own else kind("what is wrong")
    error.put_status = "MESSAGE_ILLEGAL"
    error.add_note("seen by the test")
    again = copied(error)
    assert (type(again), str(again), again.args) == (kind, str(error), error.args)
    assert vars(again) == vars(error)


@way
def test_an_error_of_the_operating_system_keeps_number_and_file(copied: Callable[[Any], Any]) -> None:
    error = errors.StoreNotFoundError(2, "no such file or directory", "/nowhere")
    again = copied(error)
    assert (again.errno, again.strerror, again.filename, str(again)) == (2, error.strerror, "/nowhere", str(error))


@way
@pytest.mark.parametrize("properties", [None, {"a": "1"}, MappingProxyType({"a": "1"})])
def test_a_message_comes_out_equal_whatever_mapping_its_properties_were(
    properties: Mapping[str, str] | None, copied: Callable[[Any], Any]
) -> None:
    message = Message("t", b"x", "tag", ["k1", "k2"], properties, 3, False, 2, 7, 9)
    assert copied(message) == message
    with pytest.raises(dataclasses.FrozenInstanceError):
        copied(message).topic = "u"


class Order(Message):
    """A subclass, which has a `__dict__`."""


@way
def test_a_message_of_a_subclass_keeps_what_that_added(copied: Callable[[Any], Any]) -> None:
    order = Order("t", b"x")
    object.__setattr__(order, "customer", "eu")
    again = copied(order)
    assert (type(again), again, again.customer) == (Order, order, "eu")


@way
def test_stored_messages_come_out_equal(golden_store: Callable[[str], Path], copied: Callable[[Any], Any]) -> None:
    with rmqfast.open_store(golden_store("basic-4.9.4")) as store:
        result = store.get("fx_q1", 0, 1250)
        assert copied(result) == result
        assert copied(store.info()) == store.info()
        assert copied(store.verify(crc=False)) == store.verify(crc=False)


@way
@pytest.mark.parametrize(
    "table", [TopicConfigTable, SubscriptionGroupTable, ConsumerOffsetTable, DelayOffsetTable, ConsumerFilterTable]
)
def test_tables_of_configuration_come_out_equal(
    table: Any, golden_store: Callable[[str], Path], copied: Callable[[Any], Any]
) -> None:
    loaded = table.load(golden_store("offsets-4.9.4"))
    assert (type(copied(loaded)), dict(copied(loaded))) == (table, dict(loaded))


@way
@pytest.mark.parametrize("kind", HOLDERS.values(), ids=HOLDERS)
def test_what_holds_files_or_connections_refuses_and_says_what_to_do(kind: type, copied: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=f"cannot pickle or copy a {kind.__name__}, .*: [a-z]"):
        copied(object.__new__(kind))
