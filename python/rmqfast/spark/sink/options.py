"""The options of `df.write.format("rocketmq")` and `df.writeStream`, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rmqfast._native import SparkOptions
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.validators import check_producer_group
from rmqfast.client.producer import ProducerOptions
from rmqfast.client.producer.message_batch import BATCH_SIZE, check_sendable_topic
from rmqfast.errors import ArgumentError, ClientError
from rmqfast.spark.cluster_options import ClusterOptions

__all__ = ["SinkOptions"]


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
            # made and dropped: it checks addresses, the account and TLS
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
        read = SparkOptions("sink", dict(options))
        # before the object is made, which cannot do without a name server
        read.check_cluster()
        return cls(**{name: value for name, value in read.values.items() if value is not None})

    def client_config(self, namespace: str = "") -> ClientConfig:
        """What the producers of tasks are given; their namespace, unless told otherwise, is the option's."""
        if (self.access_key is None) != (self.secret_key is None):
            raise ArgumentError("expected the options accessKey and secretKey, got one of them")
        return super().client_config(namespace or self.namespace)

    def producer_options(self) -> ProducerOptions:
        """How to send."""
        return ProducerOptions(max_message_size=self.max_message_size)
