"""Producers: `Producer`, `TransactionProducer`; Java's `DefaultMQProducer`, `TransactionMQProducer`."""

from rmqfast.client.instance import ClientInstance, ServiceState
from rmqfast.client.instance.ids import create_unique_id
from rmqfast.client.instance.members import InnerProducer
from rmqfast.client.instance.request_futures import OnReply
from rmqfast.client.producer.hooks import (
    CommunicationMode,
    EndTransactionContext,
    EndTransactionHook,
    SendContext,
    SendHook,
)
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.producer import Producer
from rmqfast.client.producer.requests import create_reply_message
from rmqfast.client.producer.selectors import QueueSelector, select_by_hash, select_by_random
from rmqfast.client.producer.send_result import SendCallback, SendResult, SendStatus
from rmqfast.client.producer.transaction_producer import TransactionProducer
from rmqfast.client.producer.transactions import LocalTransactionState, TransactionListener, TransactionSendResult
from rmqfast.client.trace import MessageType

__all__ = [
    "CommunicationMode",
    "EndTransactionContext",
    "EndTransactionHook",
    "LocalTransactionState",
    "MessageType",
    "OnReply",
    "Producer",
    "ProducerOptions",
    "QueueSelector",
    "SendCallback",
    "SendContext",
    "SendHook",
    "SendResult",
    "SendStatus",
    "ServiceState",
    "TransactionListener",
    "TransactionProducer",
    "TransactionSendResult",
    "create_reply_message",
    "create_unique_id",
    "select_by_hash",
    "select_by_random",
]

#: The group of the producer that an instance runs for its consumers.
_INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"


def _inner_producer(instance: ClientInstance) -> Producer:
    """Creates the producer of an instance, which resends messages that brokers did not take back."""
    producer = Producer(_INNER_PRODUCER_GROUP, config=instance.config)
    producer.start_inside(instance)
    return producer


InnerProducer.factory = staticmethod(_inner_producer)
