"""Harms the stream of a master's log: frames of an offset, a size and bytes of the log."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from tests.proxy import Passage, Stream

__all__ = ["HARMS", "Altered", "HarmedLog"]

_HEAD = struct.Struct(">qi")
_SIZES = (0, 1, -1, 12, 1 << 22, (1 << 22) + 1, 2**31 - 1, -(2**31))
_OFFSETS = (0, 1, -1, 2**62, 2**63 - 1, -(2**63))
_COUNTS = (1, 4, 8, 12, 91, 500, 5000)


class _Frame(NamedTuple):
    """A frame; `size` where that is not the body's."""

    offset: int
    body: bytes
    size: int | None = None

    @property
    def end(self) -> int:
        return self.offset + len(self.body)

    def written(self) -> bytes:
        return _HEAD.pack(self.offset, len(self.body) if self.size is None else self.size) + self.body


class _Hit(NamedTuple):
    """A frame to be harmed at one of its bytes, the next one, and bytes of another log that stand where its own do."""

    chance: random.Random
    frame: _Frame
    at: int
    following: _Frame
    foreign: bytes

    def with_body(self, body: bytes, count: int) -> _Harmed:
        """The frame with another body of the same length, of which so many bytes are altered."""
        whole = body[: len(self.frame.body)].ljust(len(self.frame.body), b"\0")
        place = self.frame.offset + self.at
        return self.with_frame(self.frame._replace(body=whole), Altered(place, min(place + count, self.frame.end)))

    def with_frame(self, frame: _Frame, altered: Altered) -> _Harmed:
        """Another frame, and the next one behind it."""
        return _Harmed([frame.written(), self.following.written()], [altered])

    def record_at(self, place: int) -> Altered:
        """The record of this byte: what comes behind it has other places, and does not prove itself."""
        return Altered(place, place + 1, is_exact=False)


class Altered(NamedTuple):
    """Bytes of a log, from and to, that are others; all of their record behind them is, too, unless this is exact."""

    first: int
    last: int
    is_exact: bool = True


class _Harmed(NamedTuple):
    """The replacement of a frame and the next one.

    Attributes:
        altered: Bytes of the log, from and to, that are others at their place. Their record may prove itself all the
            same, as one whose properties are others does.
        is_end: Whether nothing else comes.
    """

    frames: Sequence[bytes]
    altered: Sequence[Altered]
    is_end: bool = False


def _flip(hit: _Hit) -> _Harmed:
    body = bytearray(hit.frame.body)
    places: list[Altered] = []
    for _ in range(hit.chance.choice((1, 1, 1, 2, 8))):
        at = min(hit.at + hit.chance.randrange(300), len(body) - 1) if places else hit.at
        body[at] ^= 1 << hit.chance.randrange(8)
        places.append(Altered(hit.frame.offset + at, hit.frame.offset + at + 1))
    return _Harmed([hit.frame._replace(body=bytes(body)).written(), hit.following.written()], places)


def _flip_head(hit: _Hit) -> _Harmed:
    frame, bit = bytearray(hit.frame.written()), hit.chance.randrange(96)
    frame[bit // 8] ^= 1 << bit % 8
    return _Harmed([bytes(frame), hit.following.written()], [hit.record_at(hit.frame.end)])


def _overwrite(fill: Callable[[random.Random, int], bytes], hit: _Hit) -> _Harmed:
    count, body = hit.chance.choice(_COUNTS), hit.frame.body
    new = body[: hit.at] + fill(hit.chance, count) + body[hit.at + count :]
    return hit.with_body(new, count)


def _drop(is_told: bool, hit: _Hit) -> _Harmed:
    body = hit.frame.body[: hit.at] + hit.frame.body[hit.at + hit.chance.choice(_COUNTS) :]
    frame = hit.frame._replace(body=body, size=None if is_told else len(hit.frame.body))
    return hit.with_frame(frame, hit.record_at(hit.frame.offset + hit.at))


def _double(is_told: bool, hit: _Hit) -> _Harmed:
    body = hit.frame.body[: hit.at + hit.chance.choice(_COUNTS)] + hit.frame.body[hit.at :]
    frame = hit.frame._replace(body=body, size=None if is_told else len(hit.frame.body))
    return hit.with_frame(frame, hit.record_at(hit.frame.offset + hit.at))


def _repeat(hit: _Hit) -> _Harmed:
    return _Harmed([hit.frame.written(), hit.frame.written(), hit.following.written()], [])


def _swap(hit: _Hit) -> _Harmed:
    return _Harmed([hit.following.written(), hit.frame.written()], [])


def _swap_bodies(hit: _Hit) -> _Harmed:
    first, second = hit.frame, hit.following
    frames = [first._replace(body=second.body), _Frame(first.offset + len(second.body), first.body)]
    places = (first.offset, first.offset + len(second.body))
    return _Harmed([frame.written() for frame in frames], [hit.record_at(place) for place in places])


def _leave_out(is_hidden: bool, hit: _Hit) -> _Harmed:
    place = hit.frame.offset if is_hidden else hit.following.offset
    return _Harmed([hit.following._replace(offset=place).written()], [hit.record_at(hit.frame.offset)])


def _cut(hit: _Hit) -> _Harmed:
    frame = hit.frame.written()
    return _Harmed([frame[: hit.chance.randrange(len(frame))]], [], is_end=True)


def _of_another(hit: _Hit) -> _Harmed:
    hit = hit._replace(at=hit.chance.choice((0, hit.at)))
    # where its records stand at the same places they prove themselves
    return hit.with_body(hit.frame.body[: hit.at] + hit.foreign[hit.at :], len(hit.frame.body))


def _offset(hit: _Hit) -> _Harmed:
    place = hit.frame.offset
    offset = hit.chance.choice((*_OFFSETS, place + 1, place - 1, hit.frame.end, place - hit.at, place // 2))
    return _Harmed([hit.frame._replace(offset=offset).written(), hit.following.written()], [])


def _size(hit: _Hit) -> _Harmed:
    size = len(hit.frame.body)
    size = hit.chance.choice((*_SIZES, size + 1, size - 1, size + 12, 2 * size))
    return hit.with_frame(hit.frame._replace(size=size), hit.record_at(hit.frame.end))


def _shift(hit: _Hit) -> _Harmed:
    """Bytes of the log, from another place of it on."""
    start = hit.chance.randrange(len(hit.frame.body))
    body = (hit.frame.body[: hit.at] + hit.frame.body[start:]).ljust(len(hit.frame.body), b"\0")
    frame = hit.frame._replace(body=body[: len(hit.frame.body)])
    return hit.with_frame(frame, hit.record_at(hit.frame.offset + hit.at))


#: What may be done, by names for people.
HARMS: dict[str, Callable[[_Hit], _Harmed]] = {
    "bits flipped": _flip,
    "a bit of a frame's head flipped": _flip_head,
    "zeroes written": partial(_overwrite, lambda _, count: bytes(count)),
    "garbage written": partial(_overwrite, random.Random.randbytes),
    "bytes dropped": partial(_drop, False),
    "bytes dropped, and the size as much less": partial(_drop, True),
    "bytes doubled": partial(_double, False),
    "bytes doubled, and the size as much more": partial(_double, True),
    "a frame repeated": _repeat,
    "frames swapped": _swap,
    "the bodies of frames swapped": _swap_bodies,
    "a frame left out": partial(_leave_out, False),
    "a frame left out, and the next one in its place": partial(_leave_out, True),
    "cut": _cut,
    "bytes of another master's log": _of_another,
    "another offset": _offset,
    "another size": _size,
    "bytes from elsewhere in the log": _shift,
}


@dataclass
class HarmedLog(Passage):
    """A connection to a master's HA port, harmed once; it ends where the log does.

    Attributes:
        chance: Decides what is done, and where; nothing without.
        end: Where the master's log ends.
        other: The log of another master, which begins at 0.
        harm: What was done, in words; empty where the connection ended before.
        reports: What the follower reported, the request first.
        altered: Bytes of the log, from and to, that may have come otherwise than the master has them.
    """

    chance: random.Random | None
    end: int
    other: bytes = b""
    harm: str = ""
    reports: list[int] = field(default_factory=list)
    altered: list[Altered] = field(default_factory=list)

    def requests(self, stream: Stream) -> Stream:
        """Hands reports on."""
        rest = b""
        for piece in stream:
            rest += piece
            whole = len(rest) // 8 * 8
            self.reports += [report for (report,) in struct.iter_unpack(">q", rest[:whole])]
            rest = rest[whole:]
            yield piece

    def answers(self, stream: Stream) -> Stream:
        """Harms it, and ends where the log does."""
        frames = self._until_end(_frames(stream))
        if self.chance is None:
            return (frame.written() for frame in frames)
        return self._harmed(self.chance, frames)

    def _until_end(self, frames: Iterator[_Frame]) -> Iterator[_Frame]:
        for frame in frames:
            yield frame
            if frame.end >= self.end:
                return

    def _harmed(self, chance: random.Random, frames: Iterator[_Frame]) -> Stream:
        place = -1
        for frame in frames:
            if frame.body and place < 0:
                place = frame.offset + chance.randrange(max(self.end - frame.offset, 1))
            if frame.end <= place or not frame.body:
                yield frame.written()
                continue
            name = chance.choice(list(HARMS))
            self.harm = f"{name} at {place}"
            # behind the last one a master sends keep-alives
            following = next(frames, _Frame(frame.end, b""))
            foreign = self.other[frame.offset : frame.end]
            harmed = HARMS[name](_Hit(chance, frame, place - frame.offset, following, foreign))
            self.altered += harmed.altered
            yield from harmed.frames
            if harmed.is_end:
                return
            yield from (honest.written() for honest in frames)
            return


def _frames(stream: Stream) -> Iterator[_Frame]:
    rest = b""
    for piece in stream:
        rest += piece
        while len(rest) >= _HEAD.size:
            offset, size = _HEAD.unpack_from(rest)
            if len(rest) < _HEAD.size + size:
                break
            yield _Frame(offset, rest[_HEAD.size : _HEAD.size + size])
            rest = rest[_HEAD.size + size :]
