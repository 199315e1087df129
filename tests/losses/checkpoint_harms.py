"""Mutations of the text of a checkpoint."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

__all__ = ["harm", "without_times"]

_LARGEST = (1 << 63) - 1
_NUMBERS: list[Any] = [-1, -2, -(1 << 63), 0, 1, 3, 1 << 31, 1 << 62, _LARGEST, 1 << 63]
_OTHERS: list[Any] = [1.5, 1e300, "7", None, True, [], {}]
_TIMES = [0, 1, -5, -(1 << 63), _LARGEST, _LARGEST - 1, 1 << 63, 1_700_000_000_000]
_QUEUES = ["17", "-1", "x", "", "4294967296", "2147483648", "00", "03"]


def harm(text: str, other: str, chance: random.Random) -> tuple[str, str]:
    """A harmed text, and in words how.

    Args:
        text: A checkpoint.
        other: That of another topic.
        chance: Decides.
    """
    if chance.randrange(5) == 0:
        return chance.choice((_cut, _flip, _garbage, _double, lambda *_: (other, "that of another topic")))(
            text, chance
        )
    value: dict[str, Any] = json.loads(text)
    words = [chance.choice(_KINDS)(value, chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    return json.dumps(value), "; ".join(words)


def without_times(text: str) -> str:
    """The text as older releases wrote it."""
    value = json.loads(text)
    return json.dumps({topic: {name: of for name, of in brokers.items() if of} for topic, brokers in value.items()})


def _cut(text: str, chance: random.Random) -> tuple[str, str]:
    return text[: chance.randrange(len(text))], "cut off"


def _flip(text: str, chance: random.Random) -> tuple[str, str]:
    at = chance.randrange(len(text))
    other = chr(ord(text[at]) ^ 1 << chance.randrange(7))
    return text[:at] + other + text[at + 1 :], f"{text[at]!r} at {at} became {other!r}"


def _garbage(_: str, chance: random.Random) -> tuple[str, str]:
    text = chance.choice(
        ("", " ", "{}", "null", "[]", "latest", '"earliest"', "0", '{"log": 5}', "[" * 10_000, '{"a":' * 5_000, "\0")
    )
    return text, f"{text[:20]!r} in its place"


def _double(text: str, chance: random.Random) -> tuple[str, str]:
    """A queue that is there twice: the last one counts."""
    at = text.index('"0": ')
    number = chance.randrange(20)
    return f'{text[:at]}"0": {number}, {text[at:]}', f"queue 0 with {number} before it"


def _brokers(value: dict[str, Any], chance: random.Random) -> tuple[str, dict[str, Any]]:
    names = [name for name, brokers in value.items() if isinstance(brokers, dict) and brokers]
    topic = chance.choice(names) if names else ""
    return topic, value[topic] if names else {}


def _queues(value: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    _, brokers = _brokers(value, chance)
    found = [queues for queues in brokers.values() if isinstance(queues, dict) and queues]
    return chance.choice(found) if found else {}


def _number(value: dict[str, Any], chance: random.Random) -> str:
    queues = _queues(value, chance)
    if not queues:
        return "no queue to change"
    name = chance.choice(list(queues))
    old = queues[name]
    near = old + chance.randrange(-20, 21) if isinstance(old, int) else 5
    queues[name] = chance.choice([near, near, near, chance.choice(_NUMBERS), chance.choice(_OTHERS)])
    return f"queue {name} at {queues[name]!r}, not {old}"


def _drop_queue(value: dict[str, Any], chance: random.Random) -> str:
    return _drop(_queues(value, chance), "queue", chance)


def _add_queue(value: dict[str, Any], chance: random.Random) -> str:
    queues = _queues(value, chance)
    name, number = chance.choice(_QUEUES), chance.choice((0, 5, 30))
    queues[name] = number
    return f"queue {name!r} added at {number}"


def _rename_broker(value: dict[str, Any], chance: random.Random) -> str:
    _, brokers = _brokers(value, chance)
    if not brokers:
        return "no broker to rename"
    old = chance.choice(list(brokers))
    new = chance.choice((f"{old}z", "broker-z", "", old.upper()))
    brokers[new] = brokers.pop(old)
    return f"{old!r} renamed {new!r}"


def _add_broker(value: dict[str, Any], chance: random.Random) -> str:
    _, brokers = _brokers(value, chance)
    brokers["broker-z"] = {"0": chance.choice((0, 7))}
    return "broker-z added"


def _drop_broker(value: dict[str, Any], chance: random.Random) -> str:
    _, brokers = _brokers(value, chance)
    return _drop(brokers, "broker", chance)


def _drop(members: dict[str, Any], kind: str, chance: random.Random) -> str:
    if not members:
        return f"no {kind} to drop"
    name = chance.choice(list(members))
    del members[name]
    return f"{kind} {name!r} dropped"


def _rename_topic(value: dict[str, Any], chance: random.Random) -> str:
    topic, brokers = _brokers(value, chance)
    value.pop(topic, None)
    value[f"{topic}x"] = brokers
    return "topic renamed"


def _add_topic(value: dict[str, Any], _: random.Random) -> str:
    value["another"] = {"broker-a": {"0": 0}}
    return "topic added"


def _other_type(value: dict[str, Any], chance: random.Random) -> str:
    topic, brokers = _brokers(value, chance)
    other: Any = chance.choice((None, [], 5, "x", True))
    if brokers and chance.randrange(2):
        name = chance.choice(list(brokers))
        brokers[name] = other
        return f"{name!r} is {other!r}"
    value[topic] = other
    return f"topic is {other!r}"


def _times(value: dict[str, Any], chance: random.Random) -> str:
    """Another time in the name of the member that has them."""
    _, brokers = _brokers(value, chance)
    name = next((name for name, queues in brokers.items() if " stored " in name and not queues), None)
    if name is None:
        return "no times to change"
    broker, _, times = name.rpartition(" stored ")
    words = times.split(" ")
    at = chance.randrange(len(words))
    queue_id, _, time = words[at].partition(":")
    kind = chance.randrange(4)
    if kind == 0 and len(words) > 1:
        del words[at]
    elif kind == 1:
        words[at] = f"{queue_id}:{chance.choice(_TIMES)}"
    elif kind == 2:
        words[at] = chance.choice((f"{queue_id}:", f"17:{time}", f"{queue_id}:x", f":{time}", ""))
    else:
        words[at] = f"{queue_id}:{int(time or 0) + chance.choice((-1, 1, 1000, -1000))}" if time.isdigit() else "0:1"
    del brokers[name]
    brokers[f"{broker} stored {' '.join(words)}"] = {}
    return f"times {times!r} became {' '.join(words)!r}"


_Kind = Callable[[dict[str, Any], random.Random], str]
_KINDS: list[_Kind] = [
    *[_number] * 5,
    *[_times] * 4,
    *[_drop_queue] * 2,
    _add_queue,
    _add_queue,
    _rename_broker,
    _add_broker,
    _drop_broker,
    _rename_topic,
    _add_topic,
    _other_type,
]
