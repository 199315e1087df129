"""Options of a producer.

Source: `DefaultMQProducer`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rmqfast.arguments import check_fields, suggests_names
from rmqfast.client.instance.routes import AUTO_CREATE_TOPIC
from rmqfast.errors import ArgumentError
from rmqfast.remoting import ResponseCode

#: Response codes that cause a retry at another broker; SYSTEM_BUSY does not.
RETRY_RESPONSE_CODES = frozenset(
    {
        int(ResponseCode.TOPIC_NOT_EXIST),
        int(ResponseCode.SERVICE_NOT_AVAILABLE),
        int(ResponseCode.SYSTEM_ERROR),
        int(ResponseCode.NO_PERMISSION),
        int(ResponseCode.NO_BUYER_ID),
        int(ResponseCode.NOT_IN_CURRENT_UNIT),
    }
)


@suggests_names
@dataclass(frozen=True, kw_only=True, slots=True)
class ProducerOptions:
    """Retries, compression and limits of a producer.

    Attributes:
        create_topic_key: The topic whose settings a broker uses when it creates a missing topic.
        default_topic_queue_nums: Queues of a topic created this way.
        compress_over: Bodies of at least this many bytes are compressed.
        retries: Retries of a synchronous send, within its timeout.
        async_retries: Retries of an asynchronous send after a failed connection.
        retry_response_codes: Response codes that cause a retry.
        retry_another_broker: Whether a message that is stored, but not as durably as requested, is sent to another
            broker as well.
        max_message_size: Largest body in bytes.
        leaves_slow_brokers: Whether to avoid slow brokers for a while (Java's `sendLatencyFaultEnable`).
        max_in_flight: Most asynchronous sends in flight; further sends wait.
        max_in_flight_bytes: Most body bytes of asynchronous sends in flight.

    Raises:
        ArgumentError: A number is too small.

    Example:
        >>> from rmqfast import EmbeddedCluster, Message, Producer
        >>> from rmqfast.client.producer import ProducerOptions
        >>> options = ProducerOptions(retries=0, default_topic_queue_nums=8)
        >>> with EmbeddedCluster() as cluster:
        ...     with Producer("shop", name_server=cluster.name_server, options=options) as producer:
        ...         sent = producer.send(Message("orders", b"paid"))
        ...         len(producer.fetch_publish_message_queues("orders"))
        8
    """

    create_topic_key: str = AUTO_CREATE_TOPIC
    default_topic_queue_nums: int = 4
    compress_over: int = 4096
    retries: int = 2
    async_retries: int = 2
    retry_response_codes: frozenset[int] = RETRY_RESPONSE_CODES
    retry_another_broker: bool = False
    max_message_size: int = 4 << 20
    leaves_slow_brokers: bool = False
    max_in_flight: int = 10_000
    max_in_flight_bytes: int = 100 << 20

    def __post_init__(self) -> None:
        check_fields(self)
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ArgumentError(f"{name}: expected at least {least}, got {getattr(self, name)}")


_LEAST = {
    "default_topic_queue_nums": 1,
    "compress_over": 1,
    "retries": 0,
    "async_retries": 0,
    "max_message_size": 1,
    "max_in_flight": 1,
    "max_in_flight_bytes": 1,
}
