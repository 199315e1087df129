"""Parts that clients share, like Java's `MQClientInstance`: configuration, connections, routes, heartbeats, timers."""

from rmqfast.client.instance.api import ClientApi
from rmqfast.client.instance.config import ClientArguments, ClientConfig, TracedClientArguments
from rmqfast.client.instance.exits import ServiceState
from rmqfast.client.instance.instance import ClientInstance
from rmqfast.client.instance.members import ConsumerInner, ConsumeType, MessageModel, ProducerInner
from rmqfast.client.instance.routes import ClientErrorCode, FoundBroker
from rmqfast.client.instance.scheduler import Handle, Scheduler

__all__ = [
    "ClientApi",
    "ClientArguments",
    "ClientConfig",
    "ClientErrorCode",
    "ClientInstance",
    "ConsumeType",
    "ConsumerInner",
    "FoundBroker",
    "Handle",
    "MessageModel",
    "ProducerInner",
    "Scheduler",
    "ServiceState",
    "TracedClientArguments",
]
