"""A master's log, followed into a copy until that ends."""

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
    """How far a copy is.

    Attributes:
        position: Offset of the log behind the last record that was taken.
        listed_to: Up to where queues and index list it.
        compared_to: Up to where it was compared with the log; where that began, until then.
        last_store_timestamp: When the last record that came was stored, in milliseconds since 1970; 0 until one came.
        is_compared: Whether all that the copy had was compared.
    """

    position: int
    listed_to: int
    compared_to: int
    last_store_timestamp: int
    is_compared: bool


class FollowEnd(NamedTuple):
    """Why following a log ended.

    Attributes:
        kind: The reason.
        text: In words.
        offset: Where in the log; None where it was not the log.
    """

    kind: EndKind
    text: str
    offset: int | None


class Following:
    """A log that is followed, by threads of the extension, until it ends for one reason or another.

    Args:
        copy: Takes the log.
        address: The master's HA port, `host:port`.
        start: The copy's end, or an offset before it, from which log and copy are compared.
        max_record: Bytes of a record at most.
        lists: Whether queues and index list what comes.
        cold_rate: Bytes a second for what is old, as a master reads that from its disk; 0 for no limit.
        cold_before: What stands before this is old.
        counts: The copy is a slave's, and the master is told what it has: sends may wait for that.
        tls: Who this side is, and who is trusted, where the port has TLS.

    Raises:
        StoreError: The copy takes nothing.

    Source: `HAClient`.
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
        """How far it is."""
        return FollowProgress(*self._follower.progress())

    def wait(self, timeout: float) -> FollowEnd | None:
        """Waits until it ended, or for so many seconds."""
        end = self._follower.wait(timeout)
        return None if end is None else FollowEnd(*end)

    def stop(self) -> None:
        """Ends it; whole records that were read are written first."""
        self._follower.stop()
