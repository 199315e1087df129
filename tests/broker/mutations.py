"""Recorded requests with something wrong in them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cache

from rmqfast.remoting import RequestCode
from tests.broker.interop.replay import recording

#: What stands in the place of a number or a text.
NASTY = [
    *("", " ", "null", "true", "-1", "0", "1e3", "0x10", "NaN", "2147483647", "2147483648", "-2147483649"),
    *("9223372036854775807", "-9223372036854775808", "9223372036854775808", "9" * 400, "1.5", "+7", "٣"),
    *("../x", "/etc/passwd", "%RETRY%../x", "%DLQ%", "%RETRY%", "TBW102", "SCHEDULE_TOPIC_XXXX", "a\0b", "\0", "\n"),
    *("\x01\x02", "\x01", "KEYS\x01\x02\x02TAGS", "a@b", "a@b@c", '"', "\\", "{}", "[]", '{"a":'),
    *("𐏿", "\u202e", "n" * 10_000),
]


@dataclass(frozen=True)
class Recorded:
    """A request as it was sent, and to whom."""

    server: str
    code: int
    name: str
    frame: bytes

    @property
    def header(self) -> bytes:
        """The header's bytes."""
        return self.frame[8 : 8 + int.from_bytes(self.frame[5:8], "big")]

    @property
    def body(self) -> bytes:
        """The bytes behind it."""
        return self.frame[8 + len(self.header) :]


@cache
def recorded(version: str = "4.9.4") -> list[Recorded]:
    """All requests of clients."""
    return [
        Recorded(row["server"], row["code"], row["name"], bytes.fromhex(row["request"]))
        for row in recording(version)
        if row["direction"] == "client-to-server"
    ]


def one_of_each() -> list[Recorded]:
    """A request of each code and server whose header is JSON."""
    kinds = {(each.server, each.code): each for each in recorded() if each.frame[4] == 0}
    return list(kinds.values())


def framed(header: bytes, body: bytes = b"", serialize_type: int = 0) -> bytes:
    """A frame."""
    mark = serialize_type << 24 | len(header)
    return (4 + len(header) + len(body)).to_bytes(4, "big") + mark.to_bytes(4, "big") + header + body


def json_frame(code: int, fields: dict[str, str] | None = None, body: bytes = b"", **more: object) -> bytes:
    """A frame with a header in JSON."""
    header = {"code": code, "extFields": fields or {}, "flag": 0, "language": "JAVA", "opaque": 1, "version": 401}
    return framed(json.dumps(header | more).encode("utf-8", "surrogatepass"), body)


#: What requests have in their headers; each takes what it knows.
FIELDS = {
    name: value
    for value, names in {
        "wire": "topic originTopic srcTopic",
        "wire_push": "consumerGroup group groupName producerGroup srcGroup destGroup",
        "0": "queueId offset index beginTimestamp delayLevel brokerId tranStateTableOffset commitLogOffset",
        "8": "commitOrRollback",
        "10": "maxNum count maxMsgNums timestamp endTimestamp commitOffset",
        "x": "clientId msgId originMsgId key statsName statsKey namespace clusterName brokerName haServerAddr value",
        "1.2.3.4:5": "brokerAddr",
        "true": "isForce order isOrder isOffline removeOffset onlyThisBroker isC jstackEnable unitMode",
        "1": "readQueueNums writeQueueNums perm topicSysFlag",
    }.items()
    for name in names.split()
}
#: Would take the permission to serve away, or the broker's own entry at the name server.
NOT_SENT = {RequestCode.UPDATE_BROKER_CONFIG, RequestCode.WIPE_WRITE_PERM_OF_BROKER}


def made_up() -> list[Recorded]:
    """A request of each code that nobody recorded, for either server."""
    codes = {int(code) for code in RequestCode} - {each.code for each in recorded()} - NOT_SENT
    frames = {code: json_frame(code, FIELDS, b'{"topic":"wire","groupName":"g","table":{}}') for code in sorted(codes)}
    return [Recorded(server, code, str(code), frames[code]) for code in frames for server in ("broker", "namesrv")]


class Mutator:
    """Makes requests that are nearly sound, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._requests = recorded() + recorded("5.3.3") + made_up()
        self._ways = [self._flip, self._cut, self._splice, self._lie, self._value, self._bytes, self._doubled]

    def next(self) -> tuple[str, bytes]:
        """Name of the server that it is for, and a frame."""
        request = self._random.choice(self._requests)
        frame = bytearray(request.frame)
        for _ in range(self._random.choice((1, 1, 1, 2, 4))):
            self._random.choice(self._ways)(frame)
        server = request.server if self._random.random() < 0.95 else "namesrv"
        return server, bytes(frame)

    def _flip(self, frame: bytearray) -> None:
        if frame:
            frame[self._random.randrange(len(frame))] ^= 1 << self._random.randrange(8)

    def _cut(self, frame: bytearray) -> None:
        at = self._random.randrange(len(frame) + 1)
        del frame[at : at + self._random.choice((1, 2, 7, 100))]
        self._mend(frame)

    def _splice(self, frame: bytearray) -> None:
        other = self._random.choice(self._requests).frame
        start = self._random.randrange(len(other))
        at = self._random.randrange(len(frame) + 1)
        frame[at:at] = other[start : start + self._random.randrange(1, 60)]
        self._mend(frame)

    def _lie(self, frame: bytearray) -> None:
        lie = self._random.choice((0, 1, 3, 4, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFF, 1 << 24, len(frame)))
        at = self._random.choice((0, 4))
        frame[at : at + 4] = ((lie + self._random.randrange(-2, 3)) % (1 << 32)).to_bytes(4, "big")

    def _value(self, frame: bytearray) -> None:
        """Another value in the header, which stays a sound one."""
        length = int.from_bytes(frame[5:8], "big")
        try:
            header = json.loads(frame[8 : 8 + length])
            fields = header["extFields"] if self._random.random() < 0.8 else header
            name = self._random.choice([*fields])
            fields[name] = self._random.choice((self._random.choice(NASTY), self._random.randrange(-5, 400)))
        except (ValueError, LookupError, TypeError):
            self._flip(frame)
        else:
            frame[:] = framed(json.dumps(header).encode(), bytes(frame[8 + length :]))

    def _bytes(self, frame: bytearray) -> None:
        at = self._random.randrange(len(frame) + 1)
        frame[at : at + 4] = self._random.choice(
            (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b'"]}', b"[[[[")
        )
        self._mend(frame)

    def _doubled(self, frame: bytearray) -> None:
        at = self._random.randrange(len(frame) + 1)
        frame[at:at] = frame[at : at + self._random.randrange(1, 40)] * self._random.choice((1, 3, 50))
        self._mend(frame)

    def _mend(self, frame: bytearray) -> None:
        """Mostly the length is that of what is there, so that the frame is looked into."""
        if self._random.random() < 0.9 and len(frame) > 8:
            frame[:4] = (len(frame) - 4).to_bytes(4, "big")
            if self._random.random() < 0.9 and b"}" in frame and frame[4] == 0:
                frame[5:8] = min(int.from_bytes(frame[5:8], "big"), len(frame) - 8).to_bytes(3, "big")
