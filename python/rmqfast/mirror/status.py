"""The status of a mirror, as users get it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class MirrorState(StrEnum):
    """State of a broker's mirror."""

    WAITING = "waiting"
    CATCHING_UP = "catching up"
    FOLLOWING = "following"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """Status of a broker's mirror.

    Attributes:
        broker_name: The broker.
        directory: The store of the copy.
        state: The mirror's state.
        source: Followed HA port, `host:port`; empty without a connection.
        position: Offset in the master's log after the last record copied or skipped.
        master_position: End of the master's log, polled once a second.
        lag_bytes: Bytes that the mirror lags behind.
        lag_seconds: Age of the last copied message while the mirror lags; otherwise 0.
        last_store_timestamp: Store time of the last copied message, in milliseconds since 1970; 0 without messages.
        withdrawn_bytes: Bytes removed from the copy because the master lost them.
        note: Reason why the mirror waits or failed.

    Example:
        >>> from rmqfast import EmbeddedCluster, Message, Mirror, Producer
        >>> with EmbeddedCluster() as cluster, Producer("shop", name_server=cluster.name_server) as producer:
        ...     sent = producer.send(Message("orders", b"paid"))
        ...     with Mirror(getfixture("tmp_path"), name_server=cluster.name_server, once=True) as mirror:
        ...         is_done = mirror.wait(60)
        ...         status = mirror.status()[0]
        >>> status.broker_name == sent.queue.broker_name, status.lag_bytes, status.state.value
        (True, 0, 'stopped')
    """

    broker_name: str
    directory: Path
    state: MirrorState
    source: str
    position: int
    master_position: int
    lag_bytes: int
    lag_seconds: float
    last_store_timestamp: int
    withdrawn_bytes: int
    note: str
