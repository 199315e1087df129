"""The client that all parts of an `Admin` share. It finds brokers and sends requests.

Source: `DefaultMQAdminExtImpl`, `BrokerData.selectBrokerAddr`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from rmqfast.client.instance import ClientApi, ClientConfig, ClientInstance
from rmqfast.client.instance.api import ClusterInfo
from rmqfast.errors import ClientError, ResponseError
from rmqfast.logs import QuietLock
from rmqfast.remoting import Response, ResponseCode
from rmqfast.remoting.protocol.broker_data import MASTER_ID, BrokerData
from rmqfast.remoting.protocol.topic_route_data import TopicRouteData

T = TypeVar("T")

#: Default timeout of a request in seconds, that of mqadmin.
TIMEOUT = 5.0
#: Requests that a broker must compute, or pass on to a client, get so many times the timeout, as with mqadmin.
SLOW = 3
RETRY_PREFIX, DLQ_PREFIX = "%RETRY%", "%DLQ%"


class BrokerAddress(NamedTuple):
    broker_name: str
    address: str


class AdminClient:
    def __init__(self, config: ClientConfig, timeout: float) -> None:
        self._config = config
        self.timeout: Final = timeout
        self._lock = QuietLock()
        self._is_started = False
        self._running: ClientInstance | None = None

    def start(self) -> None:
        with self._lock:
            if self._is_started:
                raise ClientError(
                    "the Admin was started before",
                    next_step="an Admin is started once: make a new one",
                )
            # As in Java, the process id in the client id separates processes of one machine.
            config = self._config.with_pid_instance_name()
            # Clients of one process with the same id share an instance.
            instance = ClientInstance.of(config, config.client_id())
            try:
                instance.start()
            except BaseException:
                instance.release()
                raise
            self._running, self._is_started = instance, True

    def shutdown(self) -> None:
        with self._lock:
            instance, self._running = self._running, None
        if instance is not None:
            instance.release()

    @property
    def is_running(self) -> bool:
        return self._running is not None and not self._running.is_closed

    @property
    def instance(self) -> ClientInstance:
        """Returns the running instance, or raises `ClientError` before `start` and after `shutdown`."""
        if self._running is None:
            state = "shut down" if self._is_started else "not started"
            raise ClientError(
                f"the Admin is {state}",
                next_step="use it as `with rmqfast.Admin(name_server=...) as admin:`, or call start() first",
            )
        return self._running

    @property
    def api(self) -> ClientApi:
        return self.instance.api

    def ask(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, object] | None = None,
        body: bytes = b"",
        *,
        slow: bool = False,
    ) -> Response:
        """Sends a request and returns the answer. With `slow`, the timeout is multiplied by `SLOW`."""
        timeout = self.timeout * (SLOW if slow else 1)
        return self.api.ask(address, code, ext_fields, body, timeout=timeout)

    def route(self, topic: str) -> TopicRouteData:
        return self.api.topic_route(topic, timeout=self.timeout)

    def cluster_info(self) -> ClusterInfo:
        return self.api.cluster_info(timeout=self.timeout)

    def brokers_of(self, topic: str) -> list[BrokerAddress]:
        """Returns one address per broker of the topic: its master's, or a slave's if it has no master."""
        return self.addresses(self.route(topic).broker_datas)

    def brokers_if_there(self, topic: str) -> list[BrokerAddress]:
        """Returns the brokers of the topic, or an empty list if the topic does not exist."""
        return unless(ResponseCode.TOPIC_NOT_EXIST, lambda: self.brokers_of(topic), [])

    def brokers_of_group(self, group: str, topic: str | None = None) -> list[BrokerAddress]:
        """Returns the brokers of the group's retry topic, or the brokers of `topic` if there is no retry topic."""
        try:
            return self.brokers_of(RETRY_PREFIX + group)
        except ResponseError as error:
            # A group that nobody joined has no retry topic.
            if topic is None or error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            return self.brokers_of(topic)

    def broker_of(self, topic: str, broker_name: str) -> str:
        address = dict(self.brokers_of(topic)).get(broker_name)
        if address is None:
            raise ClientError(f"there is no broker {broker_name}", next_step=f"topics.route({topic!r}) lists them")
        return address

    def broker_address(self, broker: str) -> str:
        """Returns the address of a broker. `broker` is its name, or an address, which is returned unchanged."""
        if ":" in broker:
            return broker
        brokers = self.cluster_info().brokers
        address = dict(self.addresses(brokers.values())).get(broker)
        if address is None:
            names = ", ".join(sorted(brokers)) or "none"
            raise ClientError(f"there is no broker {broker}", next_step=f"the name server knows {names}")
        return address

    def masters(self, cluster: str | None = None) -> list[BrokerAddress]:
        """Returns the masters of one cluster; `None` means all clusters."""
        addresses = self.addresses(broker for broker in self.brokers_in(cluster) if MASTER_ID in broker.addresses)
        if not addresses:
            raise ClientError("no master is known to the name server", next_step="start a broker, and wait a moment")
        return addresses

    def brokers_in(self, cluster: str | None) -> list[BrokerData]:
        """Returns the brokers of one cluster, sorted by name; `None` means all clusters."""
        info = self.cluster_info()
        if cluster is not None and cluster not in info.clusters:
            raise ClientError(
                f"there is no cluster {cluster}",
                next_step=f"clusters here: {', '.join(sorted(info.clusters)) or 'none'}",
            )
        names = set(info.brokers) if cluster is None else set(info.clusters[cluster])
        return [broker for name, broker in sorted(info.brokers.items()) if name in names]

    def addresses(self, brokers: Iterable[BrokerData]) -> list[BrokerAddress]:
        selected = [(broker.broker_name, select_address(broker)) for broker in brokers]
        return sorted(BrokerAddress(name, self.translate(address)) for name, address in selected if address is not None)

    def translate(self, address: str) -> str:
        """Maps an address from a route to one that this client can reach, by the translation in the configuration."""
        return self._config.translated(address)


def unless(code: int, request: Callable[[], T], default: T) -> T:
    """Returns the result of `request`, or `default` if the server answers with the response code `code`."""
    try:
        return request()
    except ResponseError as error:
        if error.code == code:
            return default
        raise


def select_address(broker: BrokerData) -> str | None:
    """Returns a broker's address: the master's, or that of the slave with the lowest id. None if it has no address."""
    # The master has the lowest id, 0.
    return broker.addresses[min(broker.addresses)] if broker.addresses else None
