"""A producer for rows of Arrow: its requests are made first, and sent one by one by whoever knows when and where.

Source: `DefaultMQProducer`, `MessageBatch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rmqfast._native import Outgoing
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.instance.validators import check_message
from rmqfast.client.producer.message_batch import BATCH_SIZE, check_sendable_topic
from rmqfast.client.producer.producer_impl import ProducerImpl
from rmqfast.client.producer.send_result import SendResult
from rmqfast.message import Message, MessageQueue
from rmqfast.store.writer import ArrowBatch, ArrowStream

__all__ = ["RowProducer", "RowRequest"]


@dataclass(frozen=True, slots=True)
class RowRequest:
    """A request that sends rows which follow each other: all of them are stored, or none.

    Attributes:
        first: Number of its first row, of those that it was made of.
        rows: How many.
        size: Bytes of its body.
        topic: Their topic.
    """

    first: int
    rows: int
    size: int
    topic: str
    _outgoing: Outgoing


class RowProducer(ProducerImpl):
    """Makes requests of rows, and sends them. A request that is sent again has the ids that it had before.

    Example:
        >>> import pyarrow as pa, rmqfast
        >>> from rmqfast.client.instance import ClientConfig
        >>> from rmqfast.client.producer import ProducerOptions
        >>> rows = pa.record_batch({"body": [b"a", b"b", b"c"], "tags": ["x", None, "z"]})
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     config = ClientConfig(name_server=cluster.name_server)
        ...     with RowProducer("shop", config, ProducerOptions()) as producer:
        ...         requests = producer.requests(rows, "orders", batch_size=2)
        ...         queue = producer.queues("orders")[0]
        ...         [(each.first, each.rows, producer.send(each, queue).queue_offset) for each in requests]
        [(0, 2, 0), (2, 1, 2)]

    Source: `DefaultMQProducer.send` of a collection and a queue.
    """

    def requests(
        self, rows: ArrowStream | ArrowBatch, topic: str, *, batch_size: int = BATCH_SIZE
    ) -> Sequence[RowRequest]:
        """The requests of all rows, in their order.

        Args:
            rows: Arrow record batches; their columns are `body`, and as wanted `tags`, `keys`, `properties`, `flag`.
            topic: Where they go.
            batch_size: Rows of a request at most; its bytes are at most `max_message_size`.

        Raises:
            ArgumentError: A row that cannot be sent; says which.
            ClientError: A topic that cannot be sent to.

        Source: `MessageBatch.generateFromList`.
        """
        self._check_running()
        most = self.options.max_message_size
        made = self._encoder.encode_rows(rows, topic, self._wrapped, most_bytes=most, most_count=batch_size)
        requests, first = [], 0
        for outgoing in made:
            count = outgoing.unique_id.count(",") + 1
            requests.append(RowRequest(first, count, len(outgoing), topic, outgoing))
            first += count
        return requests

    def request(self, message: Message) -> RowRequest:
        """The request of one message; it may be a delayed one.

        Raises:
            ClientError: A message that brokers do not take.
            ArgumentError: As above, of its properties.
        """
        self._check_running()
        check_message(message, max_message_size=self.options.max_message_size)
        outgoing = self._encoder.encode(message, wrap(self._config.namespace, message.topic))
        return RowRequest(0, 1, len(outgoing), message.topic, outgoing)

    def queues(self, topic: str, *, is_new: bool = False) -> Sequence[MessageQueue]:
        """The queues of a topic that may be written to; of one that is not there those that it would get.

        Args:
            topic: The topic.
            is_new: Whether to ask a name server once more.

        Raises:
            ClientError: Nobody has the topic, or no name server answers.

        Source: `DefaultMQProducerImpl.tryToFindTopicPublishInfo`.
        """
        self._check_running()
        wrapped = self._wrapped(topic)
        if is_new:
            self._instance.update_route(wrapped)
        namespace = self._config.namespace
        queues = self._queues_of(wrapped).queues
        return [MessageQueue(unwrap(namespace, each.topic), each.broker_name, each.queue_id) for each in queues]

    def send(self, request: RowRequest, queue: MessageQueue, timeout: float = 3.0) -> SendResult:
        """Sends a request to a queue, once, and waits for the answer.

        Args:
            request: One of this producer's.
            queue: A queue of its topic.
            timeout: In seconds.

        Raises:
            ResponseError: The broker refused it: nothing is stored.
            RemotingError: No answer: it may be stored.
            ClientError: The broker is not known.

        Source: `DefaultMQProducerImpl.sendKernelImpl`.
        """
        outgoing: Any = request._outgoing  # noqa: SLF001 - the other half of this class
        return self._kernel.send(outgoing, MessageQueue(outgoing.topic, queue.broker_name, queue.queue_id), timeout, ())

    def _wrapped(self, topic: str) -> str:
        check_sendable_topic(topic)
        return wrap(self._config.namespace, topic)
