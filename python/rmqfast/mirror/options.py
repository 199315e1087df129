"""How brokers are mirrored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rmqfast.errors import ArgumentError
from rmqfast.store.retention import RetentionOptions

__all__ = ["IfBroken", "MirrorOptions"]

IfBroken = Literal["stop", "withdraw", "anew"]
Start = Literal["earliest", "latest"] | int | datetime


@dataclass(frozen=True, kw_only=True)
class MirrorOptions:
    """How a broker is mirrored.

    Args:
        start: Where a new mirror begins, at the start of a file of the master's log: "earliest", "latest", an offset
            of the log, or a time. One that is there goes on where it ended.
        retention: How long files of the mirror stay, whatever the master keeps; for ever without.
        if_broken: What to do where the mirror cannot go on as it is. "stop" fails. "withdraw" removes the messages
            that the master has lost since they were copied, and goes on; where retention overtook the mirror it
            fails. "anew" begins a new directory beside the old one, with `.2` behind its name, then `.3`.
        let_sends_time_out: Follow a SYNC_MASTER of RocketMQ 4.x itself where it has no slave: each send waits for
            `slaveTimeout`, 3 seconds, then, as the connection counts as a slave that is never done.
        cold_rate: Bytes a second for what is older than the last two files of the log: the master reads it from its
            disk, and its consumers lose their cache. 0 for no limit.
        max_record: Bytes of a record at most.

    Raises:
        ArgumentError: A value out of range.

    Example:
        >>> MirrorOptions(start="latest", if_broken="withdraw").cold_rate
        200000000
    """

    start: Start = "earliest"
    retention: RetentionOptions | None = None
    if_broken: IfBroken = "stop"
    let_sends_time_out: bool = False
    cold_rate: int = 200_000_000
    max_record: int = 64 << 20

    def __post_init__(self) -> None:
        for name, least in (("cold_rate", 0), ("max_record", 1 << 10)):
            if getattr(self, name) < least:
                raise ArgumentError(f"{name}: expected {least} or more, got {getattr(self, name)}")
        if self.if_broken not in ("stop", "withdraw", "anew"):
            raise ArgumentError(f"if_broken: expected stop, withdraw or anew, got {self.if_broken!r}")
        if isinstance(self.start, str) and self.start not in ("earliest", "latest"):
            raise ArgumentError(f"start: expected earliest, latest, an offset or a datetime, got {self.start!r}")
        if isinstance(self.start, int) and self.start < 0:
            raise ArgumentError(f"start: expected an offset, 0 or more, got {self.start}")
