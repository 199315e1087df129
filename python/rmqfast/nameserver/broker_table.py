"""Stores the brokers by name: their addresses, their clusters, and when they were last heard of.

Source: RocketMQ's `RouteInfoManager`, `BrokerData`, `ClusterInfo`, `clusterAddrTable`, `BrokerLiveInfo`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from rmqfast.errors import ResponseError
from rmqfast.nameserver.names import MAX_ADDRESSES, MAX_BROKERS, MAX_CLUSTERS, MAX_LIVE
from rmqfast.remoting import Channel, ResponseCode
from rmqfast.remoting.protocol.broker_data import BrokerData
from rmqfast.store.config import DataVersion


class BrokerTable:
    def __init__(self) -> None:
        self._brokers: dict[str, BrokerData] = {}
        self._clusters: dict[str, dict[str, None]] = {}

    def put(self, cluster: str, broker_name: str, broker_id: int, address: str) -> bool:
        """Registers an address under a broker name and id. Removes other ids that the address had under that name.

        Returns whether the name or the id is new.
        """
        broker = self._brokers.get(broker_name)
        self._check_room(cluster, broker, broker_id)
        self._clusters.setdefault(cluster, {})[broker_name] = None
        if broker is None:
            broker = self._brokers[broker_name] = BrokerData(cluster, broker_name)
        # With two ids under one name, an address would be its own slave, so the old id is removed.
        old_ids = [
            old_id for old_id, old_address in broker.addresses.items() if old_address == address and old_id != broker_id
        ]
        for old_id in old_ids:
            del broker.addresses[old_id]
        is_new = broker_id not in broker.addresses
        broker.addresses[broker_id] = address
        return is_new

    def remove(self, broker_name: str, broker_id: int) -> bool:
        """Removes a broker id, and then brokers and clusters without ids. Returns whether the broker is gone."""
        broker = self._brokers.get(broker_name)
        if broker is None:
            return False
        broker.addresses.pop(broker_id, None)
        if broker.addresses:
            return False
        del self._brokers[broker_name]
        # A broker registered under two clusters leaves both.
        for cluster in list(self._clusters):
            self._leave(cluster, broker_name)
        return True

    def get(self, broker_name: str) -> BrokerData | None:
        return self._brokers.get(broker_name)

    def names_of(self, cluster: str) -> list[str]:
        """Returns the brokers of a cluster, sorted. Empty for an unknown cluster."""
        return sorted(self._clusters.get(cluster, ()))

    def clusters(self) -> list[str]:
        return sorted(self._clusters)

    def ids_of(self, address: str) -> list[tuple[str, int]]:
        """Returns the broker names and ids that have an address."""
        return [
            (b.broker_name, broker_id)
            for b in self
            for broker_id, known_address in b.addresses.items()
            if known_address == address
        ]

    def to_json(self) -> dict[str, Any]:
        """Returns all brokers and clusters as JSON, as `mqadmin clusterList` requests them."""
        brokers = {broker.broker_name: broker.to_json() for broker in self}
        clusters = {cluster: self.names_of(cluster) for cluster in self._clusters}
        return {"brokerAddrTable": brokers, "clusterAddrTable": clusters}

    def __iter__(self) -> Iterator[BrokerData]:
        return iter([self._brokers[name] for name in sorted(self._brokers)])

    def __len__(self) -> int:
        return len(self._brokers)

    def _leave(self, cluster: str, broker_name: str) -> None:
        names = self._clusters[cluster]
        names.pop(broker_name, None)
        if not names:
            del self._clusters[cluster]

    def _check_room(self, cluster: str, broker: BrokerData | None, broker_id: int) -> None:
        if cluster not in self._clusters and len(self._clusters) >= MAX_CLUSTERS:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"there are {MAX_CLUSTERS} clusters already")
        if broker is None and len(self._brokers) >= MAX_BROKERS:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"there are {MAX_BROKERS} brokers already")
        if broker is not None and broker_id not in broker.addresses and len(broker.addresses) >= MAX_ADDRESSES:
            name = broker.broker_name
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"broker {name} has {MAX_ADDRESSES} addresses already")


#: Milliseconds without a registration after which a broker counts as dead.
BROKER_CHANNEL_EXPIRED_TIME = 120_000


@dataclass(frozen=True, slots=True)
class BrokerLiveInfo:
    """The last time at which a broker was heard of.

    Attributes:
        last_update: Time in milliseconds since 1970.
        data_version: Version of its topics.
        channel: Connection of the last registration.
        ha_server_address: Address for its slaves.
    """

    last_update: int
    data_version: DataVersion
    channel: Channel
    ha_server_address: str | None

    def is_expired(self, now: int) -> bool:
        return self.last_update + BROKER_CHANNEL_EXPIRED_TIME < now


class LiveTable:
    def __init__(self) -> None:
        self._brokers: dict[str, BrokerLiveInfo] = {}

    def put(self, address: str, info: BrokerLiveInfo) -> None:
        self.check_room(address)
        self._brokers[address] = info

    def check_room(self, address: str) -> None:
        """Raises `ResponseError` if there are too many brokers."""
        if address not in self._brokers and len(self._brokers) >= MAX_LIVE:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"there are {MAX_LIVE} addresses of brokers already")

    def get(self, address: str) -> BrokerLiveInfo | None:
        return self._brokers.get(address)

    def touch(self, address: str, now: int) -> None:
        if address in self._brokers:
            # QUERY_DATA_VERSION counts as a sign of life, so that brokers with unchanged topics need not send them.
            self._brokers[address] = replace(self._brokers[address], last_update=now)

    def remove(self, address: str) -> None:
        self._brokers.pop(address, None)

    def is_changed(self, address: str, data_version: DataVersion) -> bool:
        """Whether the topics of a broker differ from its registered topics. True if it has not registered any."""
        info = self._brokers.get(address)
        return info is None or not _equal(info.data_version, data_version)

    def find_expired(self, now: int) -> list[tuple[str, BrokerLiveInfo]]:
        return [(address, info) for address, info in self._brokers.items() if info.is_expired(now)]

    def on_channel(self, channel: Channel) -> list[str]:
        """Returns the addresses of the brokers whose last request came over a connection."""
        return [address for address, info in self._brokers.items() if info.channel == channel]

    def __len__(self) -> int:
        return len(self._brokers)


def _equal(version: DataVersion, other: DataVersion) -> bool:
    """Returns whether time and counter of two versions are equal, as `DataVersion.equals` does."""
    return (version.timestamp, version.counter) == (other.timestamp, other.counter)
