"""The options of `df.write.format("rocketmq")` and `df.writeStream`: names, texts to values, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.validators import check_producer_group
from rmqfast.client.producer import ProducerOptions
from rmqfast.client.producer.message_batch import BATCH_SIZE, check_sendable_topic
from rmqfast.errors import ArgumentError, ClientError
from rmqfast.spark.cluster_options import CLUSTER_PARSERS, ClusterOptions
from rmqfast.spark.option_values import number_of, text_of, topic_of, values_of

__all__ = ["SINK_OPTION_NAMES", "SinkOptions"]

_DAY_MS = 86_400_000
_STORE = dict.fromkeys(("path", "storePath"), "is a store's; this sink sends to brokers, nameServer says to which")


@dataclass(frozen=True, kw_only=True)
class SinkOptions(ClusterOptions):
    """The options of the sink as values, beside those of the cluster; they are pickled to the tasks.

    Attributes:
        topic: Where all rows go, whatever their column `topic` says.
        group: The producer group.
        namespace: Stands before topic and group.
        batch_size: Rows of a request at most.
        max_message_size: Bytes of a request at most; brokers have a limit of their own, 4 MiB unless told otherwise.
        send_timeout_ms: How long an answer is waited for.
        retry_timeout_ms: How long a request is tried again while no broker can take it.
        in_flight: Requests of a task on their way at once.

    Raises:
        ArgumentError: No name server, half of an account, a name that is not allowed, TLS without anybody to trust.

    Example:
        >>> SinkOptions.of({"nameserver": "10.0.0.1:9876", "topic": "orders"}).batch_size
        256

    Source: `RocketMQConfig` of rocketmq-spark, whose names are kept; `DefaultMQProducer`.
    """

    topic: str | None = None
    group: str = "rmqfast_spark"
    namespace: str = ""
    batch_size: int = BATCH_SIZE
    max_message_size: int = 4 << 20
    send_timeout_ms: int = 3000
    retry_timeout_ms: int = 60_000
    in_flight: int = 4

    def __post_init__(self) -> None:
        """Checks in the driver what would otherwise fail in every task."""
        if not self.name_server.strip():  # the environment of executors, where clients look next, is another one
            raise ArgumentError("option nameServer: expected host:port of a name server, got none")
        try:
            self.client_config()
            check_producer_group(self.group)
            if self.topic is not None:
                check_sendable_topic(self.topic)
        except ClientError as error:
            raise ArgumentError(f"option group or topic: {error}") from error

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SinkOptions:
        """Reads options; their names may be in any case.

        Args:
            options: As Spark gives them to a data source.

        Raises:
            ArgumentError: An unknown name, a text that is no such value, a value out of range.

        Source: `DataSource.options` of PySpark.
        """
        own = {name: text for name, text in options.items() if name.lower() not in _SPARKS_OWN}
        values = values_of(own, _PARSERS, _STORE)
        values.setdefault("name_server", "")
        return cls(**values)

    def client_config(self, namespace: str = "") -> ClientConfig:
        """What the producers of tasks are given; their namespace, unless told otherwise, is the option's."""
        if (self.access_key is None) != (self.secret_key is None):
            raise ArgumentError("expected the options accessKey and secretKey, got one of them")
        return super().client_config(namespace or self.namespace)

    def producer_options(self) -> ProducerOptions:
        """How to send."""
        return ProducerOptions(max_message_size=self.max_message_size)


def _rows(name: str, text: str) -> int:
    return number_of(name, text, most=32_767)


def _bytes(name: str, text: str) -> int:
    return number_of(name, text, most=1 << 30)


def _milliseconds(name: str, text: str) -> int:
    return number_of(name, text, most=_DAY_MS)


def _milliseconds_or_none(name: str, text: str) -> int:
    return number_of(name, text, least=0, most=_DAY_MS)


def _requests(name: str, text: str) -> int:
    return number_of(name, text, most=64)


_PARSERS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "nameServer": ("name_server", text_of),
    "topic": ("topic", topic_of),
    "group": ("group", text_of),
    "namespace": ("namespace", text_of),
    **CLUSTER_PARSERS,
    "batchSize": ("batch_size", _rows),
    "maxMessageSize": ("max_message_size", _bytes),
    "sendTimeoutMs": ("send_timeout_ms", _milliseconds),
    "retryTimeoutMs": ("retry_timeout_ms", _milliseconds_or_none),
    "inFlight": ("in_flight", _requests),
}
SINK_OPTION_NAMES = tuple(_PARSERS)
#: What Spark gives to every sink of a stream.
_SPARKS_OWN = frozenset({"checkpointlocation", "queryname"})
