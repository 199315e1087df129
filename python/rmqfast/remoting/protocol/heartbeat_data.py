"""The body of a heartbeat. It is checked against limits before it is used.

Source: `ConsumerData`, `HeartbeatData`, `Validators.checkGroup`, `TopicValidator.validateTopic`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rmqfast._native import MAX_NAMED_TOPIC, name_problem
from rmqfast.errors import ResponseError
from rmqfast.remoting import fastjson
from rmqfast.remoting.codes import ResponseCode
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

#: Limits of one heartbeat.
MAX_GROUPS = 1000
MAX_SUBSCRIPTIONS = 1000
MAX_SUBSCRIPTIONS_IN_ALL = 10_000

MAX_CLIENT_ID = 1024
MAX_TOPIC_NAME = MAX_NAMED_TOPIC

# Enum names by ordinal: Java clients send names, librocketmq and others send ordinals.
CONSUME_TYPES = ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY")
MESSAGE_MODELS = ("BROADCASTING", "CLUSTERING")
CONSUME_FROM_WHERE = (
    "CONSUME_FROM_LAST_OFFSET",
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsumerData:
    """A consumer group of a client.

    `consume_type`, `message_model` and `consume_from_where` are None for a name unknown to 4.9.4.
    """

    group_name: str
    consume_type: str | None
    message_model: str | None
    consume_from_where: str | None
    subscriptions: tuple[SubscriptionData, ...]
    unit_mode: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "consumeFromWhere": self.consume_from_where,
            "consumeType": self.consume_type,
            "groupName": self.group_name,
            "messageModel": self.message_model,
            "subscriptionDataSet": [subscription.to_json() for subscription in self.subscriptions],
            "unitMode": self.unit_mode,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class HeartbeatData:
    """The state that a client reports every 30 seconds. `client_id` looks like `10.0.0.1@4711#2607801348397`."""

    client_id: str
    consumers: tuple[ConsumerData, ...]
    producers: tuple[str, ...]

    @classmethod
    def of_body(cls, body: bytes, *, now: int) -> HeartbeatData:
        """Parses a heartbeat. Raises `ResponseError` if it is malformed, has illegal names or exceeds a limit."""
        members = JsonObject.of_body(body)
        client_id = members.text("clientID")
        if len(client_id) > MAX_CLIENT_ID:
            raise _wrong(f"body.clientID: expected at most {MAX_CLIENT_ID} characters, got {len(client_id)}")
        # Check everything before any registration, so that no heartbeat is applied only in part.
        consumers = tuple(_consumer(item, now) for item in members.objects("consumerDataSet", most=MAX_GROUPS))
        count = sum(len(consumer.subscriptions) for consumer in consumers)
        if count > MAX_SUBSCRIPTIONS_IN_ALL:
            raise _wrong(f"body: expected at most {MAX_SUBSCRIPTIONS_IN_ALL} subscriptions, got {count}")
        producers = members.objects("producerDataSet", most=MAX_GROUPS)
        names = (checked_name("group", item.text("groupName")) for item in producers)
        return cls(client_id=client_id, consumers=consumers, producers=tuple(names))

    def encode(self) -> bytes:
        members = {
            "clientID": self.client_id,
            "consumerDataSet": [consumer.to_json() for consumer in self.consumers],
            "producerDataSet": [{"groupName": group} for group in self.producers],
        }
        return fastjson.encode(members)


def checked_name(kind: Literal["group", "topic"], name: str) -> str:
    """Returns the name of a group or topic. Raises `ResponseError` if it is illegal. Retry topics may be longer."""
    problem = name_problem("group" if kind == "group" else "named topic", name)
    if problem is not None:
        raise _wrong(problem)
    return name


def _consumer(members: JsonObject, now: int) -> ConsumerData:
    subscriptions = members.objects("subscriptionDataSet", most=MAX_SUBSCRIPTIONS)
    return ConsumerData(
        group_name=checked_name("group", members.text("groupName")),
        consume_type=members.word("consumeType", CONSUME_TYPES),
        message_model=members.word("messageModel", MESSAGE_MODELS),
        consume_from_where=members.word("consumeFromWhere", CONSUME_FROM_WHERE),
        subscriptions=tuple(_subscription(item, now) for item in subscriptions),
        unit_mode=members.flag("unitMode"),
    )


def _subscription(members: JsonObject, now: int) -> SubscriptionData:
    subscription = SubscriptionData.from_json(members, now=now)
    checked_name("topic", subscription.topic)
    return subscription


def _wrong(remark: str) -> ResponseError:
    return ResponseError(ResponseCode.SYSTEM_ERROR, remark)
