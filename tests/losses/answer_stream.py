"""Harms answers of brokers and name servers: frames of the remoting protocol, of which some are changed by chance."""

from __future__ import annotations

import json
import random
import re
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from rmqfast.remoting import RequestCode
from tests.broker.interop.frames import Frame
from tests.proxy import Passage, Stream

from .rows import Key

__all__ = ["Answers", "HarmedAnswers", "records_in"]

_CODES = (0, 1, 2, 3, 14, 16, 17, 19, 20, 21, 24, 26, 205, 215, -1, 10_000, 2**31 - 1)
_FIELDS = ("nextBeginOffset", "minOffset", "maxOffset", "suggestWhichBrokerId")
_OFFSETS = ("0", "-1", "1", str(2**62), str(2**63 - 1), str(-(2**63)), str(2**63), "x", "", "1e3")
#: Queues that the statistics do not list are asked for one by one.
_COUNTS = (0, -1, 1, 2, 3, 5, 100, 65_537, 2**31 - 1, 2**40, "x", None)


class _Harmed(NamedTuple):
    """The replacement of an answer.

    Attributes:
        late: What comes behind the next answer.
        altered: Messages whose records were altered where no checksum speaks of it.
        is_end: Whether the connection ends here.
    """

    frames: Sequence[bytes]
    late: Sequence[bytes] = ()
    altered: Sequence[Key] = ()
    is_end: bool = False


@dataclass
class Answers:
    """Harms the answers of an attempt, over any number of connections.

    Attributes:
        chance: Decides what is done.
        records: Records of the topics, by their messages.
        harms: What may be done, by the code of the request.
        left: How many answers are harmed yet.
        harm: What was done, in words.
        altered: Messages that were altered where no checksum speaks of it.
    """

    chance: random.Random
    records: Mapping[Key, bytes]
    left: int = 0
    harm: list[str] = field(default_factory=list)
    altered: set[Key] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def harmed(self, code: int, answer: bytes) -> _Harmed | None:
        """The harmed answer to a request of this code; None if it is unchanged."""
        harms = _HARMS.get(code)
        with self.lock:
            if harms is None or not self.left or self.chance.random() < 0.4:
                return None
            self.left -= 1
            name = self.chance.choice(list(harms))
            harmed = harms[name](_Hit(self.chance, Frame.read(answer), answer, self.records))
            self.harm.append(f"{name} of {RequestCode(code).name}")
            self.altered.update(harmed.altered)
            return harmed


class HarmedAnswers(Passage):
    """A connection whose answers go through `answers`."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._codes: dict[int, int] = {}

    def requests(self, stream: Stream) -> Stream:
        """Hands them on, and keeps what they ask."""
        for frame in _frames(stream):
            header = Frame.read(frame).header
            self._codes[header["opaque"]] = header["code"]
            yield frame

    def answers(self, stream: Stream) -> Stream:
        """Harms some."""
        late: Sequence[bytes] = ()
        for frame in _frames(stream):
            opaque = Frame.read(frame).header["opaque"]
            harmed = self._answers.harmed(self._codes.pop(opaque, -1), frame)
            yield from (frame,) if harmed is None else harmed.frames
            yield from late
            late = () if harmed is None else harmed.late
            if harmed is not None and harmed.is_end:
                return


class _Hit(NamedTuple):
    """An answer to be harmed, and the records of all topics."""

    chance: random.Random
    frame: Frame
    raw: bytes
    records: Mapping[Key, bytes]

    def with_header(self, **changes: Any) -> _Harmed:
        header = {name: value for name, value in (self.frame.header | changes).items() if value is not None}
        return _Harmed([Frame(self.frame.serialization, header, self.frame.body).written()])

    def with_fields(self, **changes: str | None) -> _Harmed:
        fields = {name: value for name, value in (self.frame.fields | changes).items() if value is not None}
        return self.with_header(extFields=fields)

    def with_body(self, body: bytes, altered: Sequence[Key] = ()) -> _Harmed:
        return _Harmed([self.frame.__class__(self.frame.serialization, self.frame.header, body).written()], (), altered)

    def with_json(self, value: Any) -> _Harmed:
        return self.with_body(json.dumps(value).encode())


def _code(hit: _Hit) -> _Harmed:
    return hit.with_header(code=hit.chance.choice(_CODES))


def _code_without_body(hit: _Hit) -> _Harmed:
    harmed = hit._replace(frame=Frame(hit.frame.serialization, hit.frame.header, b""))
    return harmed.with_header(code=hit.chance.choice(_CODES))


def _field(hit: _Hit) -> _Harmed:
    name = hit.chance.choice(_FIELDS)
    value = int(hit.frame.fields.get(name, 0))
    near = [str(value + distance) for distance in (-33, -1, 1, 2, 31, 500)]
    return hit.with_fields(**{name: hit.chance.choice([*_OFFSETS, *near, *near, None])})


def _no_fields(hit: _Hit) -> _Harmed:
    return hit.with_header(extFields=None)


def _opaque(hit: _Hit) -> _Harmed:
    opaque = hit.frame.header["opaque"]
    return hit.with_header(opaque=hit.chance.choice((opaque + 1, opaque - 1, 0, -1, 2**31 - 1)))


def _flag(hit: _Hit) -> _Harmed:
    return hit.with_header(flag=hit.chance.choice((0, 2, 3, -1)))


def _twice(hit: _Hit) -> _Harmed:
    return _Harmed([hit.raw, hit.raw])


def _late(hit: _Hit) -> _Harmed:
    return _Harmed([], [hit.raw])


def _never(_: _Hit) -> _Harmed:
    return _Harmed([])


def _cut(hit: _Hit) -> _Harmed:
    return _Harmed([hit.raw[: hit.chance.randrange(len(hit.raw))]], is_end=True)


def _length(hit: _Hit) -> _Harmed:
    at = hit.chance.choice((0, 4))
    length = hit.chance.choice((0, 1, -1, 2**31 - 1, -(2**31), 1 << 24, len(hit.raw), len(hit.raw) - 5))
    return _Harmed([hit.raw[:at] + struct.pack(">i", length) + hit.raw[at + 4 :]])


def _head_bit(hit: _Hit) -> _Harmed:
    raw = bytearray(hit.raw)
    at = hit.chance.randrange(max(len(raw) - len(hit.frame.body), 1))
    raw[at] ^= 1 << hit.chance.randrange(8)
    return _Harmed([bytes(raw)])


def _bits(hit: _Hit) -> _Harmed:
    body = bytearray(hit.frame.body)
    altered = []
    for _ in range(hit.chance.choice((1, 1, 1, 4)) if body else 0):
        at = hit.chance.randrange(len(body))
        records = records_in(hit.frame.body)
        altered += [key for key, *place in records if _is_unprotected(hit.frame.body, at, *place)]
        body[at] ^= 1 << hit.chance.randrange(8)
    return hit.with_body(bytes(body), altered)


def _is_unprotected(body: bytes, at: int, first: int, last: int) -> bool:
    """Whether a byte is of this record, and not of the message's body, which has a checksum."""
    own = first + 88
    (size,) = struct.unpack_from(">i", body, own - 4)
    return first <= at < last and not own <= at < own + size


def _truncated(hit: _Hit) -> _Harmed:
    return hit.with_body(hit.frame.body[: hit.chance.randrange(len(hit.frame.body) + 1)])


def _garbage(hit: _Hit) -> _Harmed:
    return hit.with_body(hit.chance.choice((b"", bytes(100), hit.chance.randbytes(300), hit.frame.body + bytes(8))))


def _records(change: Callable[[_Hit, list[bytes]], list[bytes]], hit: _Hit) -> _Harmed:
    """Whole records in another order, fewer, or others."""
    parts = [hit.frame.body[first:last] for _, first, last in records_in(hit.frame.body)]
    return hit.with_body(b"".join(change(hit, parts)) if parts else hit.frame.body)


def _fewer(hit: _Hit, parts: list[bytes]) -> list[bytes]:
    first = hit.chance.randrange(len(parts))
    return parts[:first] + parts[hit.chance.randrange(first + 1, len(parts) + 1) :]


def _doubled(hit: _Hit, parts: list[bytes]) -> list[bytes]:
    at = hit.chance.randrange(len(parts))
    return parts[: at + 1] + parts[at:]


def _shuffled(hit: _Hit, parts: list[bytes]) -> list[bytes]:
    return hit.chance.sample(parts, len(parts))


def _of_other_queues(hit: _Hit, parts: list[bytes]) -> list[bytes]:
    """Sound records of the same offsets, from other queues or topics: of some or of all messages."""
    own = [key for key, _, _ in records_in(b"".join(parts))]
    topic, queue, _ = hit.chance.choice([key for key in hit.records if key[:2] != own[0][:2]])
    places = own if hit.chance.random() < 0.5 else hit.chance.sample(own, hit.chance.randrange(1, len(own) + 1))
    others = {key: hit.records.get((topic, queue, key[2])) for key in places}
    return [others.get(key) or part for key, part in zip(own, parts, strict=True)]


def _of_another_place(hit: _Hit, parts: list[bytes]) -> list[bytes]:
    """Records of the same queue, from another offset on."""
    (topic, queue, offset), *_ = next(iter(records_in(parts[0])))
    start = offset + hit.chance.choice((-20, -1, 1, 7, 32, 64))
    there = [hit.records.get((topic, queue, start + number)) for number in range(len(parts))]
    return [record for record in there if record]


def _route(change: Callable[[_Hit, dict[str, Any]], object], hit: _Hit) -> _Harmed:
    if not hit.frame.body:
        return _Harmed([hit.raw])
    value = json.loads(hit.frame.body)
    change(hit, value)
    return hit.with_json(value)


def _queue_count(hit: _Hit, route: dict[str, Any]) -> None:
    hit.chance.choice(route["queueDatas"])["readQueueNums"] = hit.chance.choice(_COUNTS)


def _perm(hit: _Hit, route: dict[str, Any]) -> None:
    hit.chance.choice(route["queueDatas"])["perm"] = hit.chance.choice((0, 2, -1, 2**31, "x"))


def _broker_name(hit: _Hit, route: dict[str, Any]) -> None:
    of = hit.chance.choice(("queueDatas", "brokerDatas"))
    hit.chance.choice(route[of])["brokerName"] = hit.chance.choice(("broker-b", "", None, 5))


def _broker_address(hit: _Hit, route: dict[str, Any]) -> None:
    address = hit.chance.choice(("127.0.0.2:1", "", "x", "127.0.0.2:99999", None))
    hit.chance.choice(route["brokerDatas"])["brokerAddrs"] = {"0": address} if hit.chance.random() < 0.8 else {}


def _member(hit: _Hit, value: dict[str, Any]) -> None:
    name = hit.chance.choice(list(value))
    if hit.chance.random() < 0.3:
        del value[name]
    else:
        value[name] = hit.chance.choice(([], {}, None, "x", [None], [[]]))


def _stats(change: Callable[[_Hit, dict[str, Any]], object], hit: _Hit) -> _Harmed:
    """Statistics have objects as the names of members, which JSON does not know."""
    text = hit.frame.body.decode()
    queues = _STATS.findall(text)
    if not queues:
        return _Harmed([hit.raw])
    table = {name: json.loads(numbers) for name, numbers in queues}
    change(hit, table)
    body = ",".join(f"{name}:{json.dumps(numbers)}" for name, numbers in table.items())
    return hit.with_body(f'{{"offsetTable":{{{body}}}}}'.encode())


def _offset(hit: _Hit, table: dict[str, Any]) -> None:
    numbers = table[hit.chance.choice(list(table))]
    name = hit.chance.choice(("minOffset", "maxOffset"))
    near = [numbers[name] + distance for distance in (-20, -1, 1, 20)]
    numbers[name] = hit.chance.choice((*near, *near, -1, 2**62, 2**63 - 1, -(2**63), "x", None, 1.5))


def _queue_left_out(hit: _Hit, table: dict[str, Any]) -> None:
    del table[hit.chance.choice(list(table))]


def _queue_renamed(hit: _Hit, table: dict[str, Any]) -> None:
    name = hit.chance.choice(list(table))
    queue = json.loads(name)
    queue[hit.chance.choice(list(queue))] = hit.chance.choice(("bills", "broker-b", 7, -1, None))
    table[json.dumps(queue)] = table.pop(name)


_Change = Callable[[_Hit], _Harmed]
#: What may be done to any answer.
_OF_ALL: dict[str, _Change] = {
    "another code": _code,
    "another opaque": _opaque,
    "another flag": _flag,
    "twice": _twice,
    "late": _late,
    "never": _never,
    "cut": _cut,
    "another length": _length,
    "a bit of the head flipped": _head_bit,
    "a body that ends early": _truncated,
    "garbage": _garbage,
}
_HARMS: dict[int, dict[str, _Change]] = {
    RequestCode.PULL_MESSAGE: _OF_ALL
    | {
        "another code without a body": _code_without_body,
        "another number": _field,
        "another number again": _field,
        "no numbers": _no_fields,
        "bits flipped": _bits,
        "records left out": partial(_records, _fewer),
        "a record doubled": partial(_records, _doubled),
        "records in another order": partial(_records, _shuffled),
        "records of other queues": partial(_records, _of_other_queues),
        "records of another place": partial(_records, _of_another_place),
    },
    RequestCode.GET_ROUTEINFO_BY_TOPIC: _OF_ALL
    | {
        "another number of queues": partial(_route, _queue_count),
        "another permission": partial(_route, _perm),
        "another name of a broker": partial(_route, _broker_name),
        "another address": partial(_route, _broker_address),
        "another member": partial(_route, _member),
    },
    RequestCode.GET_TOPIC_STATS_INFO: _OF_ALL
    | {
        "another offset": partial(_stats, _offset),
        "a queue left out": partial(_stats, _queue_left_out),
        "another name of a queue": partial(_stats, _queue_renamed),
    },
}
_STATS = re.compile(r"(\{[^{}]*\}):(\{[^{}]*\})")


def records_in(body: bytes) -> Iterator[tuple[Key, int, int]]:
    """The messages of a body, and from where to where their records are."""
    at = 0
    while at + 91 <= len(body):
        (size,) = struct.unpack_from(">i", body, at)
        queue, _, offset = struct.unpack_from(">iiq", body, at + 12)
        (body_size,) = struct.unpack_from(">i", body, at + 84)
        name_at = at + 88 + body_size
        topic = body[name_at + 1 : name_at + 1 + body[name_at]].decode()
        yield (topic, queue, offset), at, at + size
        at += size


def _frames(stream: Stream) -> Stream:
    rest = b""
    for piece in stream:
        rest += piece
        while len(rest) >= 4 and len(rest) >= 4 + (size := struct.unpack_from(">I", rest)[0]):
            yield rest[: 4 + size]
            rest = rest[4 + size :]
