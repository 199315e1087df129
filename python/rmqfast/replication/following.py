"""Follows a master's log into a copy.

Source: `HAClient`.
"""

from __future__ import annotations

import os
from typing import Literal, NamedTuple

from rmqfast._native import Follower
from rmqfast.remoting.tls_options import TlsOptions
from rmqfast.store.replica import Replica

__all__ = ["EndKind", "FollowEnd", "FollowProgress", "Following"]

#: Why following a log ended: asked to; nobody listens; the connection ended; nothing came; this side did not write in
#: time; no frame came; log and copy differ; no sound record stands there; the disk is full; the copy takes nothing.
EndKind = Literal["stopped", "connect", "closed", "silent", "stalled", "frame", "diverged", "broken", "full", "store"]


class FollowProgress(NamedTuple):
    """Progress of a copy.

    Attributes:
        position: Offset in the log behind the last record received.
        listed_to: Position up to which queues and index list the log.
        compared_to: Position up to which copy and log were compared; at first the start.
        last_store_timestamp: Store time of the last record received, in milliseconds since 1970; 0 for none.
        is_compared: Whether the whole copy was compared.
    """

    position: int
    listed_to: int
    compared_to: int
    last_store_timestamp: int
    is_compared: bool


class FollowEnd(NamedTuple):
    """Reason why following ended.

    Attributes:
        kind: The kind of end.
        text: The reason in words.
        offset: The position in the log, if the end has to do with one.
    """

    kind: EndKind
    text: str
    offset: int | None


class Following:
    """Threads of the extension that follow a log until that ends.

    Args:
        copy: The copy.
        address: The master's HA port, `host:port`.
        start: End of the copy, or an earlier offset from which log and copy are compared.
        max_record: Limit of a record in bytes.
        lists: Whether queues and index list the records.
        cold_rate: Bytes per second for old data, which the master reads from its disk; 0: no limit.
        cold_before: Data before this offset is old.
        counts: Reports positions, for which sends at the master may wait.
        tls: TLS of the HA port.
    """

    def __init__(
        self,
        copy: Replica,
        address: str,
        start: int,
        *,
        max_record: int,
        lists: bool = True,
        cold_rate: int = 0,
        cold_before: int = 0,
        counts: bool = False,
        tls: TlsOptions | None = None,
    ) -> None:
        self._follower = Follower.start(
            copy.store.appender,
            os.fspath(copy.path),
            address,
            start,
            max_record=max_record,
            lists=lists,
            cold_rate=cold_rate,
            cold_before=cold_before,
            counts=counts,
            tls=tls,
            topics=copy.topics,
        )

    def progress(self) -> FollowProgress:
        return FollowProgress(*self._follower.progress())

    def wait(self, timeout: float) -> FollowEnd | None:
        """Waits up to `timeout` seconds for the end."""
        end = self._follower.wait(timeout)
        return None if end is None else FollowEnd(*end)

    def stop(self) -> None:
        """Stops after writing the whole records that were read."""
        self._follower.stop()
