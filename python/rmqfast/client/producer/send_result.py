"""How a send ended.

Source: `SendResult`, `SendStatus`, `MQClientAPIImpl.processSendResponse`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from rmqfast.errors import RemotingProtocolError, ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Response, ResponseCode

DEFAULT_REGION = "DefaultRegion"


class SendStatus(StrEnum):
    """How safe a message is; it is stored in any case.

    Source: `SendStatus`.
    """

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


class SendResult(NamedTuple):
    """How a send ended.

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

    Source: `SendResult`.
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


_new = tuple.__new__
#: Those that say that the message is stored.
STATUSES: Mapping[int, SendStatus] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


def result_of(response: Response, queue: MessageQueue, unique_id: str, address: str) -> SendResult:
    """What a broker's answer to a send says.

    Args:
        response: The answer.
        queue: Where the message went; a broker that was to choose says which of its queues.
        unique_id: The id that the producer gave.
        address: The broker, for errors.

    Raises:
        ResponseError: The message is not stored.
        RemotingProtocolError: The answer lacks what it must have.

    Source: `MQClientAPIImpl.processSendResponse`.
    """
    status = STATUSES.get(response.code)
    if status is None:
        raise ResponseError(response.code, response.remark or "", address)
    fields = response.ext_fields or {}
    try:
        offset_msg_id, queue_id, offset = fields["msgId"], int(fields["queueId"]), int(fields["queueOffset"])
    except (KeyError, ValueError) as error:
        message = f"{address}: expected msgId, queueId and queueOffset in the answer to a send, got {dict(fields)}"
        raise RemotingProtocolError(message) from error
    if queue_id != queue.queue_id:
        queue = MessageQueue(queue.topic, queue.broker_name, queue_id)
    region, traced = fields.get("MSG_REGION") or DEFAULT_REGION, fields.get("TRACE_ON") != "false"
    # as SendResult(...) does it, in a third of the time
    return _new(
        SendResult, (status, unique_id, offset_msg_id, queue, offset, fields.get("transactionId"), region, traced)
    )
