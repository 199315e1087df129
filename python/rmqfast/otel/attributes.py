"""The attributes of messages in spans, and the trace context in a message's properties.

Source: the semantic conventions of OpenTelemetry for messaging and for RocketMQ.
"""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.propagators.textmap import Getter, TextMapPropagator
from opentelemetry.util.types import AttributeValue

from rmqfast.client.consumer import MessageView
from rmqfast.message import Message

SYSTEM = "messaging.system"
OPERATION_NAME = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
DESTINATION = "messaging.destination.name"
PARTITION = "messaging.destination.partition.id"
CLIENT_ID = "messaging.client.id"
CONSUMER_GROUP = "messaging.consumer.group.name"
BATCH_COUNT = "messaging.batch.message_count"
MESSAGE_ID = "messaging.message.id"
BODY_SIZE = "messaging.message.body.size"
ENVELOPE_SIZE = "messaging.message.envelope.size"
CLIENT_GROUP = "messaging.rocketmq.client_group"
CONSUMPTION_MODEL = "messaging.rocketmq.consumption_model"
NAMESPACE = "messaging.rocketmq.namespace"
TAG = "messaging.rocketmq.message.tag"
KEYS = "messaging.rocketmq.message.keys"
TYPE = "messaging.rocketmq.message.type"
DELAY_LEVEL = "messaging.rocketmq.message.delay_time_level"
ERROR_TYPE = "error.type"
SERVER_ADDRESS, SERVER_PORT = "server.address", "server.port"


def of_message(message: Message | MessageView) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {}
    if message.tags:
        attributes[TAG] = message.tags
    if message.keys:
        attributes[KEYS] = message.keys.split()
    return attributes


def of_broker(address: str) -> dict[str, AttributeValue]:
    host, _, port = address.rpartition(":")
    return {SERVER_ADDRESS: host.strip("[]"), SERVER_PORT: int(port)} if port.isdigit() else {}


def with_value(attributes: Mapping[str, AttributeValue | None]) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if value is not None and value != ""}


def context_of(message: MessageView, propagator: TextMapPropagator) -> Context:
    return propagator.extract(message, Context(), _PROPERTIES)


class _Properties(Getter[MessageView]):
    def get(self, carrier: MessageView, key: str) -> list[str] | None:
        value = carrier.property(key)
        return None if value is None else [value]

    def keys(self, carrier: MessageView) -> list[str]:
        return list(carrier.properties)


_PROPERTIES = _Properties()
