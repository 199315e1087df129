"""Bodies that are nearly sound, for every request code that reads one."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

from rmqfast.remoting import RequestCode
from tests.broker import recorded as messages
from tests.broker.mutations import NASTY, recorded
from tests.nameserver.registration import body, topic

_PROPERTIES = b"brokerName=x\nautoCreateTopicEnable=true\nlistenPort=1\nkvConfigPath=/x\n"
_VERSION = b'{"counter":3,"stateVersion":0,"timestamp":1700000000000}'
_REGISTRATION = body(topic("one"), topic("two", order=True), filters=["f:1"])
#: Of what no client was recorded: what administrators and brokers send.
_MADE = {
    RequestCode.UPDATE_BROKER_CONFIG: [_PROPERTIES],
    RequestCode.UPDATE_NAMESRV_CONFIG: [_PROPERTIES],
    RequestCode.REGISTER_BROKER: [_REGISTRATION, zlib.compress(_REGISTRATION)],
    RequestCode.QUERY_DATA_VERSION: [_VERSION],
}
_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    1 << 31,
    1 << 63,
    10**400,
    "",
    "\ud800",
    [],
    {},
    [[]],
    [None],
    {"": None},
    *NASTY,
]


@cache
def seeds() -> dict[int, list[bytes]]:
    """Sound bodies by request code."""
    found: dict[int, list[bytes]] = {int(code): list(bodies) for code, bodies in _MADE.items()}
    for each in recorded() + recorded("5.3.3"):
        if each.body:
            found.setdefault(each.code, []).append(each.body)
    for line in messages.all_recorded():
        if line["body"]:
            found.setdefault(line["code"], []).append(bytes.fromhex(line["body"]))
    return found


def hostile(code: int, choice: random.Random) -> bytes:
    """A body for the code: one of its own that was changed, or one of another code."""
    own, all_of_them = seeds().get(code), [each for bodies in seeds().values() for each in bodies]
    sound = choice.choice(own if own and choice.random() < 0.9 else all_of_them)
    way: Callable[[bytes, random.Random], bytes] = choice.choice([_value, _value, _flipped, _cut, _nested, _repeated])
    return way(sound, choice)


def _value(sound: bytes, choice: random.Random) -> bytes:
    """Another value at some place of the JSON, or at some name of the properties."""
    try:
        tree = json.loads(sound)
    except ValueError:
        lines = sound.split(b"\n")
        lines[choice.randrange(len(lines))] += choice.choice(NASTY).encode("utf-8", "replace")
        return b"\n".join(lines)
    places = [*_places(tree)]
    if not places:
        return json.dumps(choice.choice(_VALUES)).encode("utf-8", "replace")
    inside, key = choice.choice(places)
    if choice.random() < 0.15:
        del inside[key]
    else:
        inside[key] = choice.choice(_VALUES)
    return json.dumps(tree, ensure_ascii=choice.random() < 0.5).encode("utf-8", "replace")


def _places(tree: Any) -> list[tuple[Any, Any]]:
    inner = [*tree.items()] if isinstance(tree, dict) else [*enumerate(tree)] if isinstance(tree, list) else []
    return [(tree, key) for key, _ in inner] + [place for _, value in inner for place in _places(value)]


def _flipped(sound: bytes, choice: random.Random) -> bytes:
    changed = bytearray(sound)
    for _ in range(choice.choice((1, 1, 3))):
        changed[choice.randrange(len(changed))] ^= 1 << choice.randrange(8)
    return bytes(changed)


def _cut(sound: bytes, choice: random.Random) -> bytes:
    return sound[: choice.randrange(len(sound))]


def _nested(sound: bytes, choice: random.Random) -> bytes:
    depth = choice.choice((2, 100, 10_000))
    return choice.choice((b"[" * depth + b"]" * depth, b'{"a":' * depth + sound + b"}" * depth))


def _repeated(sound: bytes, choice: random.Random) -> bytes:
    start = choice.randrange(len(sound))
    part = sound[start : start + choice.randrange(1, 60)]
    return sound[:start] + part * choice.choice((2, 50, 1000)) + sound[start:]
