"""Answers of RocketMQ 4.9.4 to recorded requests of newer clients to a broker of their version.

Made by `python -m tests.broker.interop.record replay`. Two codes of 5.x are answered by rmqfast's broker and not by
4.9.4: 361 as 11 is, and so 4.9.4 is asked for 11; 351 as 5.3.3 answered it, but for the version.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .cluster import Cluster
from .frames import Connection, Frame
from .replay import VERSION, Difference, Replay, Row, recorded_frame, recording

SETTLED_AFTER = 0.5  # seconds, until a name server knows what its broker knows
PULL, LITE_PULL, TOPIC_CONFIG = 11, 361, 351


class Answers(Replay):
    """A replay that keeps what comes."""

    def __init__(self, version: str, cluster: Cluster) -> None:
        super().__init__(recording(version), cluster)
        self.got: dict[int, Frame | None] = {}

    def _asked(self, number: int) -> bytes:
        frame = Frame.read(super()._asked(number))
        if frame.code != LITE_PULL:
            return super()._asked(number)
        return Frame(frame.serialization, frame.header | {"code": PULL}, frame.body).written()

    def _compare_settled(self, number: int, connection: Connection) -> Iterator[Difference]:
        row = self.rows[number]
        if row["server"] == "namesrv":
            connection.response(row["requestHeader"]["opaque"], 8)
            time.sleep(SETTLED_AFTER)  # noqa: TID251 - a recording: no answer is known yet that could be waited for
            connection.send(bytes.fromhex(row["request"]))
        got = connection.response(row["requestHeader"]["opaque"], 30)
        if got is not None:
            self.moved.learn(Frame.read(bytes.fromhex(row["response"])), got)
        yield from self.compare(number, got)

    def compare(self, number: int, got: Frame | None) -> Iterator[Difference]:
        self.got[number] = got
        yield from super().compare(number, got)

    def kept(self, number: int) -> list[Any] | None:
        """The answer of a row: serialization, header, body; None without one."""
        frame = of_5(self.rows[number]) if self.rows[number]["code"] == TOPIC_CONFIG else self.got.get(number)
        if frame is None:
            return None
        recorded, here = (address.encode() for address in self.brokers)
        return [frame.serialization, frame.header, frame.body.replace(here, recorded).hex()]


def of_5(row: Row) -> Frame | None:
    """Answers of 5.x to requests that 4.9.4 does not know."""
    frame = recorded_frame(row)
    return frame and replace(frame, header=frame.header | {"version": VERSION})


def answers(version: str, cluster: Cluster) -> list[list[Any] | None]:
    run = Answers(version, cluster)
    list(run.run())
    return [run.kept(number) for number in range(len(run.rows))]
