"""Keeps which brokers are alive, and on which connection.

Source: `RouteInfoManager.brokerLiveTable`, `BrokerLiveInfo`.
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
    """What a broker last said.

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
        """Whether it has been silent for too long."""
        return self.last_update + BROKER_CHANNEL_EXPIRED_TIME < now


class LiveTable:
    """The brokers that live, by address."""

    def __init__(self) -> None:
        self._brokers: dict[str, BrokerLiveInfo] = {}

    def put(self, address: str, info: BrokerLiveInfo) -> None:
        """Notes what a broker said.

        Raises:
            ResponseError: There are too many already.
        """
        self.check_room(address)
        self._brokers[address] = info

    def check_room(self, address: str) -> None:
        """Raises a `ResponseError` where there are too many already."""
        if address not in self._brokers and len(self._brokers) >= MAX_LIVE:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"there are {MAX_LIVE} addresses of brokers already")

    def get(self, address: str) -> BrokerLiveInfo | None:
        """What a broker last said."""
        return self._brokers.get(address)

    def touch(self, address: str, now: int) -> None:
        """Notes that a broker lives, with nothing new of its topics.

        Source: `RouteInfoManager.updateBrokerInfoUpdateTimestamp`.
        """
        if address in self._brokers:
            # QUERY_DATA_VERSION is a sign of life, so that a broker with unchanged topics need not send them all
            self._brokers[address] = replace(self._brokers[address], last_update=now)

    def remove(self, address: str) -> None:
        """Forgets a broker."""
        self._brokers.pop(address, None)

    def is_changed(self, address: str, data_version: DataVersion) -> bool:
        """Whether a broker's topics are others than those that are known; so they are where nothing is known.

        Source: `RouteInfoManager.isBrokerTopicConfigChanged`.
        """
        info = self._brokers.get(address)
        return info is None or not _equal(info.data_version, data_version)

    def expired(self, now: int) -> list[tuple[str, BrokerLiveInfo]]:
        """The brokers that have been silent for too long.

        Source: `RouteInfoManager.scanNotActiveBroker`.
        """
        return [(address, info) for address, info in self._brokers.items() if info.is_expired(now)]

    def on_channel(self, channel: Channel) -> list[str]:
        """The brokers that last spoke on a connection."""
        return [address for address, info in self._brokers.items() if info.channel == channel]

    def __len__(self) -> int:
        return len(self._brokers)


def _equal(version: DataVersion, other: DataVersion) -> bool:
    """As `DataVersion.equals`, which knows of no other fields."""
    return (version.timestamp, version.counter) == (other.timestamp, other.counter)
