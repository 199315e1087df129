"""Consumers of each kind, and what they do with a message. Nothing runs here: mypy and pyright read it."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

import rmqfast
from rmqfast.client.consumer import MessageView
from rmqfast.client.lite_pull import LitePullConsumer
from rmqfast.client.pull import PullConsumer
from rmqfast.client.push import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    PushConsumer,
)

LOG = logging.getLogger("shop")


class Order:
    """What an application makes of a message."""

    def __init__(self, message: MessageView) -> None:
        self.number: int = json.loads(message.body.decode())["number"]
        self.paid = message.tags is not None and message.tags.upper() == "PAID"
        self.region = message.property("region") or message.properties.get("zone", "none")
        self.place = f"{message.topic.removeprefix('shop.')}/{message.queue_id + 1}/{message.queue_offset:08d}"
        self.age = message.store_timestamp - message.born_timestamp


def bill(messages: Sequence[MessageView], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
    """A listener."""
    orders = [Order(message) for message in messages]
    LOG.info("%d orders, %d in all", context.queue.queue_id, sum(order.number for order in orders))
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def ship(messages: Sequence[MessageView], _context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
    """A listener of queues in order."""
    for message in messages:
        LOG.info("%d bytes of %s", len(message.body), message.keys)
    return ConsumeOrderlyStatus.SUCCESS


def push(name_server: str) -> None:
    """A push consumer is given messages."""
    consumer = PushConsumer("billing", name_server=name_server)
    consumer.subscribe("orders", "paid || shipped")
    consumer.register_message_listener(bill)
    with consumer:
        consumer.suspend()


def lite_pull(name_server: str) -> list[Order]:
    """A lite pull consumer asks for messages."""
    with LitePullConsumer("audit", name_server=name_server) as consumer:
        consumer.subscribe("orders", "*")
        found = [Order(message) for message in consumer.poll(5.0)]
        consumer.commit()
        return found


def pull(name_server: str, queue: rmqfast.MessageQueue) -> bytes:
    """A pull consumer chooses queue and offset."""
    with PullConsumer("replay", name_server=name_server) as consumer:
        result = consumer.pull(queue, "*", 0, 32)
        return b"\n".join(message.body for message in result.messages)
