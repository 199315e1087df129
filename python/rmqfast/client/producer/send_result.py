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
    """The durability of a stored message. Unless it is `SEND_OK`, the flush or the copy at a slave is not confirmed."""

    SEND_OK = "SEND_OK"
    # the message is stored, but the master's flush took too long
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    # the message is stored, but its copy to the slave took too long
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    # the message is stored, but a synchronous master has no slave
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


class SendResult(NamedTuple):
    """The location of a stored message, and its status.

    Attributes:
        status: How durably the message is stored.
        msg_id: The producer's message id; for a batch all ids, separated by commas.
        offset_msg_id: The broker's message id; for a batch all ids, separated by commas.
        queue: The queue.
        queue_offset: Offset in the queue; for a batch the offset of the first message.
        transaction_id: The transaction id; None without a transaction.
        region_id: The broker's region.
        is_traced: Whether the broker allows traces of the send.

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


#: Called once with the result or the error of a send, on a thread of the client.
SendCallback: TypeAlias = Callable[[SendResult | RmqError], object]
