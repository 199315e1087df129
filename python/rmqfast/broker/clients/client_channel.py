"""A client and its connection, and the notice that a group's clients get of a change.

Source: RocketMQ's `ClientChannelInfo`, `ConsumerGroupEvent`, `Connection`, `Broker2Client`,
`DefaultConsumerIdsChangeListener`.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from rmqfast.errors import ResponseError
from rmqfast.remoting import Channel, RequestCode, ResponseCode
from rmqfast.threads import new_lock

#: Milliseconds without a heartbeat after which a client is gone (`CHANNEL_EXPIRED_TIMEOUT`).
EXPIRED_MS = 120_000
#: Groups of each kind that one connection may be in: a client has a few.
MAX_GROUPS_OF_CHANNEL = 1000


@dataclass(frozen=True, slots=True)
class ClientChannel:
    """A client as the broker knows it.

    Attributes:
        language: Name of its language; None for one that is not known.
        version: Ordinal of its release.
        last_update: Milliseconds since 1970 of its last heartbeat.
    """

    channel: Channel
    client_id: str
    language: str | None
    version: int
    last_update: int

    def is_expired(self, now: int) -> bool:
        return now - self.last_update > EXPIRED_MS

    def connection(self) -> dict[str, Any]:
        """Returns the client as administrators see it."""
        return {
            "clientAddr": self.channel.remote_address,
            "clientId": self.client_id,
            "language": self.language,
            "version": self.version,
        }


def check_room(kind: str, names: AbstractSet[str]) -> None:
    """Refuses more groups than a connection may be in."""
    if len(names) > MAX_GROUPS_OF_CHANNEL:
        remark = f"{kind} groups of a connection: expected at most {MAX_GROUPS_OF_CHANNEL}, got {len(names)}"
        raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A consumer group whose clients have to rebalance."""

    group: str
    channels: tuple[Channel, ...]

    def notify(self) -> None:
        for channel in self.channels:
            channel.send_oneway(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": self.group})


#: Clients of a group that are notified of every single change.
AT_ONCE = 64


class ChangeNotifier:
    """Sends the notices of changed groups: those of large groups together.

    Where thousands of clients of one group connect, each of them is a change of which all are notified: millions of
    notices, and each one only says that it is time to look. Those of a large group wait for `run_once`, which sends
    the last one.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._delayed: dict[str, GroupChange] = {}

    def take(self, change: GroupChange) -> None:
        """Sends a notice, or keeps it in place of an older one of its group."""
        with self._lock:
            if len(change.channels) > AT_ONCE:
                self._delayed[change.group] = change
                return
            self._delayed.pop(change.group, None)
        change.notify()

    def run_once(self) -> None:
        """Sends the backlog; to be called a few times a second."""
        with self._lock:
            delayed, self._delayed = self._delayed, {}
        for change in delayed.values():
            change.notify()
