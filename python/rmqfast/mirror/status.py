"""Status of a mirror."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

__all__ = ["MirrorState", "MirrorStatus"]


class MirrorState(StrEnum):
    """State of a mirror."""

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
        source: The HA port being followed, `host:port`; empty if none is.
        position: Offset in the master's log behind the last record copied or skipped.
        master_position: End of the master's log, asked once a second.
        lag_bytes: Bytes that the mirror is behind.
        lag_seconds: Age of the last message copied while others are outstanding; 0 if none are.
        last_store_timestamp: Store time of the last message copied, in milliseconds since 1970; 0 for none.
        withdrawn_bytes: Bytes removed again because the master lost them.
        note: Reason why it waits or failed.

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
