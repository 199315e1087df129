"""Push consumers: `PushConsumer`; Java's `DefaultMQPushConsumer`."""

from rmqfast.client.push.consume_status import (
    ConcurrentListener,
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    OrderlyListener,
    in_order,
)
from rmqfast.client.push.options import PushArguments, PushOptions, PushTimings
from rmqfast.client.push.process_queue import ProcessQueue
from rmqfast.client.push.push_consumer import PushConsumer

__all__ = [
    "ConcurrentListener",
    "ConsumeConcurrentlyContext",
    "ConsumeConcurrentlyStatus",
    "ConsumeOrderlyContext",
    "ConsumeOrderlyStatus",
    "OrderlyListener",
    "ProcessQueue",
    "PushArguments",
    "PushConsumer",
    "PushOptions",
    "PushTimings",
    "in_order",
]
