"""Keeps which brokers are alive, and on which connection.

Source: RocketMQ's `RouteInfoManager`, `BrokerLiveInfo`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rmqfast.errors import ResponseError
from rmqfast.nameserver.names import MAX_LIVE
from rmqfast.remoting import Channel, ResponseCode
from rmqfast.store.config import DataVersion

#: Milliseconds without a registration after which a broker counts as dead.
BROKER_CHANNEL_EXPIRED_TIME = 120_000


@dataclass(frozen=True, slots=True)
class BrokerLiveInfo:
    """The last sign of life of a broker.

    Attributes:
        last_update: When, in milliseconds since 1970.
        data_version: The version of its topics.
        channel: Where from.
        ha_server_address: Where its slaves connect to it.
    """

    last_update: int
    data_version: DataVersion
    channel: Channel
    ha_server_address: str | None

    def is_expired(self, now: int) -> bool:
        return self.last_update + BROKER_CHANNEL_EXPIRED_TIME < now


class LiveTable:
    """Live brokers by address."""

    def __init__(self) -> None:
        self._brokers: dict[str, BrokerLiveInfo] = {}

    def put(self, address: str, info: BrokerLiveInfo) -> None:
        self.check_room(address)
        self._brokers[address] = info

    def check_room(self, address: str) -> None:
        """Raises a `ResponseError` where there are too many."""
        if address not in self._brokers and len(self._brokers) >= MAX_LIVE:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"there are {MAX_LIVE} addresses of brokers already")

    def get(self, address: str) -> BrokerLiveInfo | None:
        return self._brokers.get(address)

    def touch(self, address: str, now: int) -> None:
        if address in self._brokers:
            # QUERY_DATA_VERSION is a sign of life, so that a broker with unchanged topics need not send them all
            self._brokers[address] = replace(self._brokers[address], last_update=now)

    def remove(self, address: str) -> None:
        self._brokers.pop(address, None)

    def is_changed(self, address: str, data_version: DataVersion) -> bool:
        """Returns whether a broker's topics differ from the registered ones, or none are registered."""
        info = self._brokers.get(address)
        return info is None or not _equal(info.data_version, data_version)

    def find_expired(self, now: int) -> list[tuple[str, BrokerLiveInfo]]:
        return [(address, info) for address, info in self._brokers.items() if info.is_expired(now)]

    def on_channel(self, channel: Channel) -> list[str]:
        """Returns the brokers that last used a connection."""
        return [address for address, info in self._brokers.items() if info.channel == channel]

    def __len__(self) -> int:
        return len(self._brokers)


def _equal(version: DataVersion, other: DataVersion) -> bool:
    """Compares as `DataVersion.equals`, which knows no other fields."""
    return (version.timestamp, version.counter) == (other.timestamp, other.counter)
