"""A producer for rows of Arrow: its requests are made first, and sent one by one by whoever knows when and where.

Source: `DefaultMQProducer`, `MessageBatch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from rmqfast._native import Outgoing
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.producer.member import ProducerMember
from rmqfast.client.producer.message_batch import BATCH_SIZE, check_sendable_topic
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.send import SendResult
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
        outgoing: What is sent.
    """

    first: int
    rows: int
    size: int
    topic: str
    outgoing: Outgoing


class RowProducer:
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

    def __init__(self, group: str, config: ClientConfig, options: ProducerOptions) -> None:
        self._member, self._namespace = ProducerMember(group, config, options), config.namespace

    def __enter__(self) -> Self:
        self._member.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._member.shutdown()

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
        self._member.check_running()
        requests, first = [], 0
        for outgoing in self._member.sender.batches.of_rows(rows, topic, batch_size):
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
        member = self._member
        member.check_running()
        member.topics.check(message)
        outgoing = member.sender.encoder.encode(message, wrap(self._namespace, message.topic))
        return RowRequest(0, 1, len(outgoing), message.topic, outgoing)

    def queues(self, topic: str, *, is_new: bool = False) -> Sequence[MessageQueue]:
        """The queues of a topic that may be written to; of one that is not there those that it would get.

        Raises:
            ClientError: Nobody has the topic, or no name server answers.

        Source: `DefaultMQProducerImpl.tryToFindTopicPublishInfo`.
        """
        member = self._member
        member.check_running()
        check_sendable_topic(topic)
        wrapped = wrap(self._namespace, topic)
        if is_new:
            member.instance.update_route(wrapped)
        return member.topics.queues_of(wrapped).queues

    def send(self, request: RowRequest, queue: MessageQueue, timeout: float = 3.0) -> SendResult:
        """Sends a request to a queue, once, and waits for the answer.

        Raises:
            ResponseError: The broker refused it: nothing is stored.
            RemotingError: No answer: it may be stored.
            ClientError: The broker is not known.

        Source: `DefaultMQProducerImpl.sendKernelImpl`.
        """
        self._member.check_running()
        sender = self._member.sender
        return sender.wait(sender.begun_batch(request.outgoing, queue, timeout))
