"""Clusters and brokers: which brokers belong to a cluster, their configuration and runtime status.

Source: `DefaultMQAdminExtImpl`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.questions import Question, ask_all
from rmqfast.client.instance.api import ClusterInfo
from rmqfast.errors import ArgumentError, ClientError, RemotingError
from rmqfast.remoting import RequestCode, properties
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.json_object import JsonObject

#: Keys that are safe to change on a running broker. Brokers accept any key, and paths, sizes or ports break them.
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

    A master and its slaves share the `broker_name`; the master has `broker_id` 0. `address` is `ip:port`.

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
        """Whether the broker is a master. Only masters accept messages."""
        return self.broker_id == MASTER_ID


class Clusters:
    """`admin.clusters`: clusters and their brokers."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client

    def info(self) -> ClusterInfo:
        """Returns all clusters and brokers that the name server knows."""
        return self._client.cluster_info()

    def brokers(self) -> list[BrokerRow]:
        """Returns all brokers, one row per address, sorted by cluster, name and id."""
        return rows_of(self.info())


def rows_of(info: ClusterInfo) -> list[BrokerRow]:
    """Returns one row per address, sorted by cluster, name and id."""
    rows = [
        BrokerRow(cluster, name, broker_id, address)
        for cluster, names in info.clusters.items()
        for name in names
        if name in info.brokers
        for broker_id, address in info.brokers[name].addresses.items()
    ]
    return sorted(rows, key=_place)


def _place(row: BrokerRow) -> tuple[str, str, int]:
    return row.cluster, row.broker_name, row.broker_id


class Brokers:
    """`admin.brokers`: status and configuration of each broker."""

    def __init__(self, client: AdminClient) -> None:
        self._client = client

    def status(self, broker: str) -> dict[str, str]:
        """Returns the runtime status of a broker under RocketMQ's names: rates, request queues, offsets, disks."""
        address = self._client.broker_address(broker)
        return status_of_body(self._client.ask(address, RequestCode.GET_BROKER_RUNTIME_INFO).body)

    def statuses(self, brokers: Sequence[BrokerRow]) -> list[dict[str, str] | RemotingError]:
        """Returns the status of each broker, or the error that came instead. All are asked at the same time."""
        code = RequestCode.GET_BROKER_RUNTIME_INFO
        questions = [Question(self._client.translate(broker.address), code) for broker in brokers]
        answers = ask_all(self._client.api, questions, seconds=self._client.timeout)
        return [answer if isinstance(answer, RemotingError) else _status_or_error(answer.body) for answer in answers]

    def config(self, broker: str) -> dict[str, str]:
        """Returns the configuration of a broker under RocketMQ's names."""
        body = self._client.ask(self._client.broker_address(broker), RequestCode.GET_BROKER_CONFIG).body
        return properties.loads(body.decode())

    def update_config(self, broker: str, changes: Mapping[str, object], *, force: bool = False) -> None:
        """Changes the configuration of a running broker.

        Args:
            broker: Name of a broker, which stands for its master, or `host:port`.
            changes: Values by RocketMQ's keys; Python's flags are sent as `true` and `false`.
            force: Allows keys that are not in `UPDATABLE`. Some of them break a running broker.

        Raises:
            ArgumentError: A key is not in `UPDATABLE`, or `changes` is empty.
            ClientError: The broker reports success but keeps old values.
        """
        other_keys = sorted(set(changes) - UPDATABLE)
        if not changes or (other_keys and not force):
            listed = ", ".join(sorted(UPDATABLE))
            raise ArgumentError(f"update_config: expected some of {listed}, got {', '.join(other_keys) or 'none'}")
        # Lower case, as brokers print flags; the values are compared below.
        texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in changes.items()}
        address, body = self._client.broker_address(broker), properties.dumps(texts).encode()
        self._client.ask(address, RequestCode.UPDATE_BROKER_CONFIG, None, body)
        # Brokers silently ignore unknown keys, so read the configuration back.
        now = self.config(address)
        ignored = sorted(key for key, value in texts.items() if now.get(key) != value)
        if ignored:
            raise ClientError(
                f"the broker {broker} did not take {', '.join(ignored)}",
                next_step="some keys count only from its next start on: set them in its broker.conf",
            )


def _status_or_error(body: bytes) -> dict[str, str] | RemotingError:
    try:
        return status_of_body(body)
    except RemotingError as error:
        return error


def status_of_body(body: bytes) -> dict[str, str]:
    """Parses the runtime status of a broker. Raises `ResponseError` if it is malformed."""
    return JsonObject.of_body(body).member("table").texts_by_text()


def log_end_of(status: Mapping[str, str]) -> int | None:
    """Returns the end of a broker's log from its status. None if the status does not tell it."""
    end = status.get("commitLogMaxOffset", "")
    return int(end) if end.isdecimal() else None


#: `runtime` of a broker's status: the time since its start.
_RUNTIME = re.compile(r"\[ (\d+) days, (\d+) hours, (\d+) minutes, (\d+) seconds \]")


def clock_of(status: Mapping[str, str]) -> int | None:
    """Returns the time by a broker's clock from its status, in milliseconds since 1970; late by at most two seconds.

    None if the status does not tell it.
    """
    since = _RUNTIME.fullmatch(status.get("runtime", ""))
    if since is None or not status.get("bootTimestamp", "").isdecimal():
        return None
    days, hours, minutes, seconds = map(int, since.groups())
    # The text has whole seconds only.
    return int(status["bootTimestamp"]) + (((days * 24 + hours) * 60 + minutes) * 60 + seconds + 2) * 1000
