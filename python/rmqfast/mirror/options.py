"""Options of a mirror."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, SupportsIndex, cast

from rmqfast.arguments import check_fields, integer, milliseconds_of, suggests_names
from rmqfast.errors import ArgumentError
from rmqfast.store.config.file import checked_name
from rmqfast.store.retention import RetentionOptions

IfBroken = Literal["stop", "withdraw", "anew"]
Start = Literal["earliest", "latest"] | int | datetime


@suggests_names
@dataclass(frozen=True, kw_only=True)
class MirrorOptions:
    """Options of a mirror.

    Args:
        topics: Topics to keep. Default: all.
        start: Start of a new mirror, rounded to the start of a log file: "earliest", "latest", an offset of the log, or
            a time. An existing mirror resumes.
        retention: Retention of the mirror's files, independent of the master's. Default: forever.
        if_broken: Action if the mirror cannot continue. "stop" fails. "withdraw" removes messages that the master lost
            after they were copied, and continues; it fails if the master's retention overtook the mirror, and for a
            mirror of selected topics. "anew" starts a new directory beside the old one, with the suffix `.2`, then
            `.3`.
        let_sends_time_out: Follow a SYNC_MASTER of RocketMQ 4.x that has no slave. Each send then waits for
            `slaveTimeout` (3 seconds), since the master takes the mirror for a slave that never catches up.
        cold_rate: Limit in bytes per second for data older than the log's last two files, since the master reads it
            from disk and evicts its consumers' cache. 0: no limit.
        max_record: Largest record in bytes.

    Raises:
        ArgumentError: A value is out of range.

    Example:
        >>> MirrorOptions(start="latest", if_broken="withdraw").cold_rate
        200000000
    """

    topics: Sequence[str] = ()
    start: Start = "earliest"
    retention: RetentionOptions | None = None
    if_broken: IfBroken = "stop"
    let_sends_time_out: bool = False
    cold_rate: int = 200_000_000
    max_record: int = 64 << 20

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "start", _start(self.start))
        for name, least in (("cold_rate", 0), ("max_record", 1 << 10)):
            if getattr(self, name) < least:
                raise ArgumentError(f"{name}: expected {least} or more, got {getattr(self, name)}")
        if self.if_broken not in ("stop", "withdraw", "anew"):
            raise ArgumentError(f"if_broken: expected stop, withdraw or anew, got {self.if_broken!r}")
        self._check_topics()
        if isinstance(self.start, str) and self.start not in ("earliest", "latest"):
            raise ArgumentError(f"start: expected earliest, latest, an offset or a datetime, got {self.start!r}")
        if isinstance(self.start, int) and self.start < 0:
            raise ArgumentError(f"start: expected an offset, 0 or more, got {self.start}")

    def _check_topics(self) -> None:
        if isinstance(self.topics, str):
            raise ArgumentError(f"topics: expected a sequence of names, got the text {self.topics!r}")
        # Sorted and unique, since the order in which topics are named does not matter.
        object.__setattr__(self, "topics", tuple(sorted(set(self.topics))))
        for name in self.topics:
            checked_name("topics", name)
        if self.topics and self.if_broken == "withdraw":
            raise ArgumentError(
                "if_broken: expected stop or anew for a mirror of some topics, got withdraw: where the master lost the "
                "end of its log, nothing tells which messages of the mirror's own log those were"
            )


def _start(start: Any) -> Start:
    if isinstance(start, str):
        return cast("Start", start)
    if isinstance(start, SupportsIndex):
        return integer("start", start)
    when = milliseconds_of("start", start)
    return start if isinstance(start, datetime) else datetime.fromtimestamp(when / 1000, UTC)
