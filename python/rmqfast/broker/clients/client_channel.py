"""A client with its connection, and the notice that clients get when their group changes.

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

#: Milliseconds without a heartbeat after which a client counts as gone (`CHANNEL_EXPIRED_TIMEOUT`).
EXPIRED_MS = 120_000
#: Limit of groups of each kind per connection; real clients have a few.
MAX_GROUPS_OF_CHANNEL = 1000


@dataclass(frozen=True, slots=True)
class ClientChannel:
    """A client and its connection, as the broker knows them.

    Attributes:
        language: Name of the client's language; None if unknown.
        version: Ordinal of the client's release.
        last_update: Time of the last heartbeat, in milliseconds since 1970.
    """

    channel: Channel
    client_id: str
    language: str | None
    version: int
    last_update: int

    def is_expired(self, now: int) -> bool:
        return now - self.last_update > EXPIRED_MS

    def connection(self) -> dict[str, Any]:
        """Returns the client in the form in which administrators get it."""
        return {
            "clientAddr": self.channel.remote_address,
            "clientId": self.client_id,
            "language": self.language,
            "version": self.version,
        }


def check_room(kind: str, names: AbstractSet[str]) -> None:
    """Refuses a heartbeat with more groups than one connection may have."""
    if len(names) > MAX_GROUPS_OF_CHANNEL:
        remark = f"{kind} groups of a connection: expected at most {MAX_GROUPS_OF_CHANNEL}, got {len(names)}"
        raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A consumer group that has changed, so that its clients must rebalance."""

    group: str
    channels: tuple[Channel, ...]

    def notify(self) -> None:
        for channel in self.channels:
            channel.send_oneway(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": self.group})


#: Largest group whose clients are notified of every change at once.
AT_ONCE = 64


class ChangeNotifier:
    """Notifies clients of changed groups. Clients of large groups are notified only once per `run_once`.

    If thousands of clients of a group connect, notifying all of them of each new client would take millions of notices.
    Since a notice only says that the group changed, the last one suffices.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._delayed: dict[str, GroupChange] = {}

    def take(self, change: GroupChange) -> None:
        """Sends a notice, or queues it for `run_once`. A queued notice replaces the older notice of its group."""
        with self._lock:
            if len(change.channels) > AT_ONCE:
                self._delayed[change.group] = change
                return
            self._delayed.pop(change.group, None)
        change.notify()

    def run_once(self) -> None:
        """Sends queued notices. Call it a few times per second."""
        with self._lock:
            delayed, self._delayed = self._delayed, {}
        for change in delayed.values():
            change.notify()
