"""Each client of asyncio has what its blocking twin has, and nothing is called otherwise."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import rmqfast
from rmqfast import aio
from rmqfast.client.consumer import OffsetStore
from rmqfast.client.instance import ClientConfig
from rmqfast.client.push import PushOptions

NAMES = ["LitePullConsumer", "Producer", "PullConsumer", "PushConsumer", "TransactionProducer"]


def public(kind: Any) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


#: Methods for an instance or an event loop, not for applications.
INNER = {
    "Producer": {"start_inside"},
    "TransactionProducer": {"start_inside"},
    "PullConsumer": {"is_ready"},
    "LitePullConsumer": {"on_arrival"},
}
#: What clients are made from.
GIVEN = {
    "name_server": "127.0.0.1:1",
    "instance_name": "one",
    "namespace": "ns",
    "config": ClientConfig(),
    "enable_msg_trace": True,
    "customized_trace_topic": "traces",
    "timeout": 7.0,
}
MEMBERS = [
    (name, member) for name in NAMES for member in sorted(public(getattr(rmqfast, name)) - INNER.get(name, set()))
]


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]


def test_the_package_has_a_twin_of_each_client() -> None:
    clients = {name for name in rmqfast.__all__ if hasattr(getattr(rmqfast, name), "shutdown")}
    assert clients == {"Admin", *NAMES} <= set(aio.__all__)


@pytest.mark.parametrize("name", ["Admin", *NAMES])
def test_a_twin_is_made_from_the_same(name: str) -> None:
    assert parameters(getattr(aio, name)) == parameters(getattr(rmqfast, name))


@pytest.mark.parametrize("name", ["Admin", *NAMES])
def test_the_blocking_twin_is_given_what_a_client_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    blocking, seen = getattr(rmqfast, name), list[dict[str, Any]]()
    make, known = blocking.__init__, inspect.signature(blocking).parameters

    def noted(self: Any, *args: Any, **named: Any) -> None:
        seen.append(named)
        make(self, *args, **named)

    monkeypatch.setattr(blocking, "__init__", noted)
    given = {each: value for each, value in GIVEN.items() if each in known}
    of_all = {"group": "g", "listener": object()}
    getattr(aio, name)(**given, **{each: value for each, value in of_all.items() if each in known})
    assert given.items() <= seen[0].items()


@pytest.mark.parametrize(("name", "member"), MEMBERS)
def test_a_twin_has_each_member_with_the_same_parameters(name: str, member: str) -> None:
    blocking, twin = getattr(rmqfast, name), getattr(aio, name)
    assert hasattr(twin, member), (
        f"rmqfast.aio.{name} lacks {member}: list it there as awaitable(blocking.{name}.{member})"
    )
    theirs, ours = inspect.getattr_static(blocking, member), inspect.getattr_static(twin, member)
    if isinstance(theirs, property):
        assert isinstance(ours, property)
        assert (ours.fset is None) == (theirs.fset is None)
        return
    assert parameters(ours) == parameters(theirs)
    if member.endswith("_async"):
        assert inspect.signature(ours).return_annotation.startswith("asyncio.Task[")
    else:
        assert inspect.iscoroutinefunction(ours), f"{name}.{member} is not awaited"
    assert ours.__doc__


@pytest.mark.parametrize("name", NAMES)
def test_a_twin_has_nothing_else(name: str) -> None:
    instance_members = {"options", "listener"}
    assert public(getattr(aio, name)) - public(getattr(rmqfast, name)) <= instance_members


def test_each_option_of_a_push_consumer_is_an_argument_of_its_constructor() -> None:
    assert PushOptions.__dataclass_fields__.keys() <= inspect.signature(rmqfast.PushConsumer).parameters.keys()


def test_offset_stores_are_twins_too() -> None:
    assert public(aio.OffsetStore) == public(OffsetStore)
    for member in public(OffsetStore):
        assert parameters(getattr(aio.OffsetStore, member)) == parameters(getattr(OffsetStore, member))


def methods(admin: Any) -> dict[str, Any]:
    """What an `Admin` can do, by subject and name."""
    members = {name: getattr(admin, name) for name in public(admin)}
    subjects = {name: each for name, each in members.items() if not callable(each)}
    own = {name: each for name, each in members.items() if callable(each)}
    return own | {
        f"{name}.{member}": getattr(each, member) for name, each in subjects.items() for member in public(each)
    }


def test_an_admin_has_the_subjects_of_its_twin_with_the_same_methods() -> None:
    theirs, ours = methods(rmqfast.Admin()), methods(aio.Admin())
    assert theirs.keys() == ours.keys()
    assert {"topics.create", "explain", "create_topic", "view_message"} <= ours.keys()
    for name, method in ours.items():
        assert inspect.iscoroutinefunction(method), f"{name} is not awaited"
        assert [each[0] for each in parameters(method)] == [each[0] for each in parameters(theirs[name])]
        assert method.__doc__
