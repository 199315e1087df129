"""Keeps the brokers by name, their addresses and clusters.

Source: RocketMQ's `RouteInfoManager`, `BrokerData`, `ClusterInfo`, `clusterAddrTable`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rmqfast.errors import ResponseError
from rmqfast.nameserver.names import MAX_ADDRESSES, MAX_BROKERS, MAX_CLUSTERS
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.protocol.broker_data import BrokerData


class BrokerTable:
    def __init__(self) -> None:
        self._brokers: dict[str, BrokerData] = {}
        self._clusters: dict[str, dict[str, None]] = {}

    def put(self, cluster: str, broker_name: str, broker_id: int, address: str) -> bool:
        """Registers an address, which leaves another id that it had in this name. Returns whether name or id is new."""
        broker = self._brokers.get(broker_name)
        self._check_room(cluster, broker, broker_id)
        self._clusters.setdefault(cluster, {})[broker_name] = None
        if broker is None:
            broker = self._brokers[broker_name] = BrokerData(cluster, broker_name)
        # an address with two ids of one name would be its own slave: the old id goes
        old_ids = [
            old_id for old_id, old_address in broker.addresses.items() if old_address == address and old_id != broker_id
        ]
        for old_id in old_ids:
            del broker.addresses[old_id]
        is_new = broker_id not in broker.addresses
        broker.addresses[broker_id] = address
        return is_new

    def remove(self, broker_name: str, broker_id: int) -> bool:
        """Removes an id; then brokers and clusters that are empty. Returns whether the broker is gone."""
        broker = self._brokers.get(broker_name)
        if broker is None:
            return False
        broker.addresses.pop(broker_id, None)
        if broker.addresses:
            return False
        del self._brokers[broker_name]
        # a broker that was registered under two clusters leaves both
        for cluster in list(self._clusters):
            self._leave(cluster, broker_name)
        return True

    def get(self, broker_name: str) -> BrokerData | None:
        return self._brokers.get(broker_name)

    def names_of(self, cluster: str) -> list[str]:
        """Returns the brokers of a cluster, sorted; none where it is not known."""
        return sorted(self._clusters.get(cluster, ()))

    def clusters(self) -> list[str]:
        return sorted(self._clusters)

    def ids_of(self, address: str) -> list[tuple[str, int]]:
        """Returns the names and ids of an address."""
        return [
            (b.broker_name, broker_id)
            for b in self
            for broker_id, known_address in b.addresses.items()
            if known_address == address
        ]

    def to_json(self) -> dict[str, Any]:
        """Returns all brokers and clusters, as `mqadmin clusterList` asks for them."""
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
