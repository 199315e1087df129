"""The result of a send.

Source: `SendResult`, `SendStatus`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from rmqfast.errors import RmqError
from rmqfast.message import MessageQueue

DEFAULT_REGION = "DefaultRegion"


class SendStatus(StrEnum):
    """The safety of a stored message.

    Example:
        >>> from rmqfast import EmbeddedCluster, Message, Producer, SendStatus
        >>> with EmbeddedCluster() as cluster, Producer("shop", name_server=cluster.name_server) as producer:
        ...     producer.send(Message("orders", b"paid")).status is SendStatus.SEND_OK
        True
    """

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


class SendResult(NamedTuple):
    """A stored message.

    Attributes:
        status: How safe the message is.
        msg_id: The id that the producer gave; of a batch those of all messages, separated by commas.
        offset_msg_id: Where the broker has it; of a batch as above.
        queue: The queue that it is in.
        queue_offset: Its place in the queue; of a batch that of the first message.
        transaction_id: Of a message in a transaction.
        region_id: The broker's region.
        is_traced: Whether the broker wants sends to be traced.

    Example:
        >>> queue = MessageQueue("orders", "broker-a", 1)
        >>> str(SendResult(SendStatus.SEND_OK, "A", "B", queue, 7))[:50]
        'SendResult [sendStatus=SEND_OK, msgId=A, offsetMsg'

    """

    status: SendStatus
    msg_id: str
    offset_msg_id: str
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    region_id: str = DEFAULT_REGION
    is_traced: bool = True

    def __str__(self) -> str:
        queue = self.queue
        return (
            f"SendResult [sendStatus={self.status}, msgId={self.msg_id}, offsetMsgId={self.offset_msg_id}, "
            f"messageQueue=MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, "
            f"queueId={queue.queue_id}], queueOffset={self.queue_offset}]"
        )


#: Takes how a send ended; is called once, on a thread of the client's.
SendCallback: TypeAlias = Callable[[SendResult | RmqError], object]
