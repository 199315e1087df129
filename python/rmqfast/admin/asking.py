"""What all administration has in common: a client instance, and whom to ask.

Source: `DefaultMQAdminExtImpl`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rmqfast.client.instance import ClientApi, ClientConfig, ClientInstance
from rmqfast.errors import ClientError
from rmqfast.remoting import Response
from rmqfast.remoting.protocol.broker_data import MASTER_ID, BrokerData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData

#: How long an answer is waited for, in seconds, unless the `Admin` is told otherwise: that of mqadmin.
TIMEOUT = 5.0
#: What a broker must compute, or ask a client for, is waited for so many times as long: as with mqadmin.
SLOW = 3
RETRY_PREFIX, DLQ_PREFIX = "%RETRY%", "%DLQ%"


class BrokerAddress(NamedTuple):
    """Where a broker is asked.

    Attributes:
        broker_name: Its name.
        address: `host:port`, as it is reached from here.
    """

    broker_name: str
    address: str


class Asking:
    """Asks name servers and brokers for what it is told; started and shut down once.

    Args:
        config: How to reach the cluster.
        timeout: How long answers are waited for, in seconds.
    """

    def __init__(self, config: ClientConfig, *, timeout: float = TIMEOUT) -> None:
        self._config, self._timeout = config, timeout
        self._lock = threading.Lock()
        self._is_started = False
        self._running: ClientInstance | None = None

    @property
    def _instance(self) -> ClientInstance:
        if self._running is None:
            state = "shut down" if self._is_started else "not started"
            raise ClientError(
                f"the Admin is {state}",
                next_step="use it as `with rmqfast.Admin(name_server=...) as admin:`, or call start() first",
            )
        return self._running

    @property
    def _api(self) -> ClientApi:
        return self._instance.api

    def _ask(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        *,
        slow: bool = False,
    ) -> Response:
        timeout = self._timeout * (SLOW if slow else 1)
        return self._api.ask(address, code, ext_fields, body, timeout=timeout)

    def _route(self, topic: str) -> TopicRouteData:
        return self._api.topic_route(topic, timeout=self._timeout)

    def _brokers_of(self, topic: str) -> list[BrokerAddress]:
        """The brokers of a topic by name, each by its master, or a slave where there is no master."""
        return self._addresses(self._route(topic).broker_datas)

    def _broker_of(self, topic: str, broker_name: str) -> str:
        """The address of one of a topic's brokers.

        Raises:
            ClientError: It is none of them.
        """
        found = dict(self._brokers_of(topic)).get(broker_name)
        if found is None:
            raise ClientError(f"there is no broker {broker_name}", next_step=f"topic_route({topic!r}) lists them")
        return found

    def _masters(self, cluster: str | None = None) -> list[BrokerAddress]:
        """The masters of all clusters, or of one.

        Raises:
            ClientError: No such cluster, or no master in it.
        """
        info = self._api.cluster_info(timeout=self._timeout)
        if cluster is not None and cluster not in info.clusters:
            raise ClientError(
                f"there is no cluster {cluster}",
                next_step=f"clusters here: {', '.join(sorted(info.clusters)) or 'none'}",
            )
        names = set(info.brokers) if cluster is None else set(info.clusters[cluster])
        masters = [broker for name, broker in sorted(info.brokers.items()) if name in names]
        found = self._addresses(broker for broker in masters if MASTER_ID in broker.addresses)
        if not found:
            raise ClientError("no master is known to the name server", next_step="start a broker, and wait a moment")
        return found

    def _addresses(self, brokers: Iterable[BrokerData]) -> list[BrokerAddress]:
        chosen = [(broker.broker_name, select_address(broker)) for broker in brokers]
        return sorted(
            BrokerAddress(name, self._config.translated(address)) for name, address in chosen if address is not None
        )


def select_address(broker: BrokerData) -> str | None:
    """The address at which a broker is asked: its master's, else that of the slave with the lowest id.

    Example:
        >>> select_address(BrokerData("c", "b", {2: "s:2", 1: "s:1"})), select_address(BrokerData("c", "b"))
        ('s:1', None)

    Source: `BrokerData.selectBrokerAddr`, which takes any slave.
    """
    return broker.addresses[min(broker.addresses)] if broker.addresses else None
