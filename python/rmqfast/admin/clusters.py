"""Clusters and brokers: members, configuration, runtime status.

Source: `DefaultMQAdminExtImpl.examineBrokerClusterInfo`, `DefaultMQAdminExtImpl.getBrokerConfig`,
`DefaultMQAdminExtImpl.updateBrokerConfig`, `DefaultMQAdminExtImpl.fetchBrokerRuntimeStats`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rmqfast.admin.admin_client import AdminClient
from rmqfast.client.instance.api import ClusterInfo
from rmqfast.errors import ArgumentError, ClientError
from rmqfast.remoting import RequestCode, properties
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.json_object import JsonObject

#: What may be changed while a broker runs: it takes any key, and some of them break it (paths, file sizes, ports).
UPDATABLE = frozenset(
    {
        "accessMessageInMemoryMaxRatio",
        "autoCreateSubscriptionGroup",
        "autoCreateTopicEnable",
        "brokerPermission",
        "defaultQueryMaxNum",
        "defaultTopicQueueNums",
        "deleteWhen",
        "diskMaxUsedSpaceRatio",
        "enablePropertyFilter",
        "fileReservedTime",
        "filterSupportRetry",
        "flushDiskType",
        "longPollingEnable",
        "maxMessageSize",
        "maxTransferBytesOnMessageInDisk",
        "maxTransferBytesOnMessageInMemory",
        "maxTransferCountOnMessageInDisk",
        "maxTransferCountOnMessageInMemory",
        "notifyConsumerIdsChangedEnable",
        "rejectTransactionMessage",
        "slaveReadEnable",
        "traceOn",
        "transactionCheckInterval",
        "transactionCheckMax",
        "transactionTimeOut",
        "waitTimeMillsInPullQueue",
        "waitTimeMillsInSendQueue",
    }
)


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker of a cluster, master or slave.

    Attributes:
        broker_name: Its name, which its slaves share.
        broker_id: 0 for a master.
        address: `ip:port`.

    Example:
        >>> from rmqfast import Admin, EmbeddedCluster
        >>> with EmbeddedCluster() as cluster, Admin(name_server=cluster.name_server) as admin:
        ...     [(row.broker_name, row.broker_id) for row in admin.clusters.brokers()]
        [('broker-a', 0)]
    """

    cluster: str
    broker_name: str
    broker_id: int
    address: str

    @property
    def is_master(self) -> bool:
        """Whether the broker accepts messages."""
        return self.broker_id == MASTER_ID


class Clusters:
    """`admin.clusters`: clusters and their brokers."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client

    def info(self) -> ClusterInfo:
        """All clusters and brokers that the name server knows."""
        return self._client.cluster_info()

    def brokers(self) -> list[BrokerRow]:
        """All brokers, one row per address, sorted by cluster, name and id."""
        info = self.info()
        rows = [
            BrokerRow(cluster, name, broker_id, address)
            for cluster, names in info.clusters.items()
            for name in names
            if name in info.brokers
            for broker_id, address in info.brokers[name].addresses.items()
        ]
        return sorted(rows, key=lambda row: (row.cluster, row.broker_name, row.broker_id))


class Brokers:
    """`admin.brokers`: status and configuration of each broker."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client

    def status(self, broker: str) -> dict[str, str]:
        """Runtime status of a broker: rates, request queues, offsets, disks, by RocketMQ's names."""
        body = self._client.ask(self._client.broker_address(broker), RequestCode.GET_BROKER_RUNTIME_INFO).body
        return JsonObject.of_body(body).member("table").texts_by_text()

    def config(self, broker: str) -> dict[str, str]:
        """The configuration of a broker."""
        body = self._client.ask(self._client.broker_address(broker), RequestCode.GET_BROKER_CONFIG).body
        return properties.loads(body.decode())

    def update_config(self, broker: str, changes: Mapping[str, object], *, force: bool = False) -> None:
        """Changes the configuration of a running broker.

        Args:
            broker: Its name, which stands for its master, or `host:port`.
            changes: Values by RocketMQ's keys; flags are `true` and `false`.
            force: Allows keys that are not in `UPDATABLE`. Some of them break a running broker.

        Raises:
            ArgumentError: A key is not allowed, or there is none.
            ResponseError: The broker refuses.
            ClientError: The broker reports success but kept other values.
        """
        other_keys = sorted(set(changes) - UPDATABLE)
        if not changes or (other_keys and not force):
            listed = ", ".join(sorted(UPDATABLE))
            raise ArgumentError(f"update_config: expected some of {listed}, got {', '.join(other_keys) or 'none'}")
        # small letters, as brokers print flags: what they took is compared below
        texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in changes.items()}
        address, body = self._client.broker_address(broker), properties.dumps(texts).encode()
        self._client.ask(address, RequestCode.UPDATE_BROKER_CONFIG, None, body)
        # brokers pass over keys that they do not know, and do not tell
        now = self.config(address)
        ignored = sorted(key for key, value in texts.items() if now.get(key) != value)
        if ignored:
            raise ClientError(
                f"the broker {broker} did not take {', '.join(ignored)}",
                next_step="some keys count only from its next start on: set them in its broker.conf",
            )
