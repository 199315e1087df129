"""The HA port of a broker, and a copy that follows it.

Source: RocketMQ's `HAClient`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple, Self

from rmqfast._native import Follower, log_source
from rmqfast.remoting.tls import TlsOptions
from rmqfast.store.replica import Replica


class ServedLog(NamedTuple):
    """The HA port of a broker, as its configuration describes it.

    Attributes:
        addresses: Addresses of this port, `host:port`, to try in turn.
        file_size: Size of a log file in bytes.
        waited_for: Followers for which sends wait: nobody, slaves that report positions, or every connection.
        has_tls: Whether the port uses TLS, which only rmqfast supports.
    """

    addresses: tuple[str, ...]
    file_size: int
    waited_for: Literal["nobody", "reports", "connections"]
    has_tls: bool

    @classmethod
    def of_config(cls, config: Mapping[str, str], address: str) -> Self:
        """Returns the HA port of the broker at `address`, from the configuration that it reports.

        Raises:
            ArgumentError: The configuration is malformed.
        """
        addresses, file_size, waited_for, has_tls = log_source(dict(config), address)
        return cls(tuple(addresses), file_size, waited_for, has_tls)


#: Reasons why following ended: `stop` was called; no server listens; the connection ended; no data came; this side
#: could not write in time; malformed frame; log and copy differ; no sound record in the log; disk full; copy failed.
EndKind = Literal["stopped", "connect", "closed", "silent", "stalled", "frame", "diverged", "broken", "full", "store"]


class FollowProgress(NamedTuple):
    """Progress of following a log.

    Attributes:
        position: Offset in the log after the last received record.
        listed_to: Position up to which queues and index list the log.
        compared_to: Position up to which copy and log were compared; at first the start.
        last_store_timestamp: Store time of the last received record, in milliseconds since 1970; 0 for none.
        is_compared: Whether the whole copy was compared.
    """

    position: int
    listed_to: int
    compared_to: int
    last_store_timestamp: int
    is_compared: bool


class FollowEnd(NamedTuple):
    """The reason why following a log has ended.

    Attributes:
        kind: Kind of end.
        text: Reason in words.
        offset: Position in the log, if the reason concerns one; otherwise `None`.
    """

    kind: EndKind
    text: str
    offset: int | None


class Following:
    """Native threads that follow a log, until it ends or `stop` is called.

    Args:
        copy: The copy.
        address: The master's HA port, `host:port`.
        start: End of the copy, or an earlier offset from which log and copy are compared.
        max_record: Limit of a record in bytes.
        lists: Whether to list the records in queues and index.
        cold_rate: Limit in bytes per second for old data, which the master reads from disk; 0: no limit.
        cold_before: Offset before which data is old.
        counts: Whether to report positions, for which sends at the master may wait.
        tls: TLS of the HA port; `None` for a plain connection.
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
        """Waits up to `timeout` seconds for the end. Returns `None` if following has not ended."""
        end = self._follower.wait(timeout)
        return None if end is None else FollowEnd(*end)

    def stop(self) -> None:
        """Stops after all complete records that were received are written."""
        self._follower.stop()
