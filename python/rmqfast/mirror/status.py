"""What a mirror tells of itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

__all__ = ["MirrorState", "MirrorStatus"]


class MirrorState(StrEnum):
    """What a mirror does."""

    WAITING = "waiting"
    CATCHING_UP = "catching up"
    FOLLOWING = "following"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """How far a broker's mirror is.

    Attributes:
        broker_name: The broker.
        directory: The store that it is copied to.
        state: What the mirror does.
        source: The HA port that is followed, `host:port`; empty while none is.
        position: Offset of the master's log behind the last record that was copied, or passed over.
        master_position: Where the master's log ended when it was last asked, once a second.
        lag_bytes: By how much the mirror is behind that.
        lag_seconds: How old the last message that came is, while others are to come; 0 while there are none.
        last_store_timestamp: When the last message that came was stored, in milliseconds since 1970; 0: none came.
        withdrawn_bytes: How much was removed again, as the master had lost it.
        note: Why it waits or failed, in words.

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
