"""The state that a consumer reports: the answer to request 307.

Source: `ConsumerRunningInfo`, `ProcessQueueInfo`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.consumer_connection import PASSIVELY
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_MOST_BYTES = 64 << 20
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class ProcessQueueInfo:
    """A queue that a consumer owns, with its state.

    Attributes:
        commit_offset: Next offset to consume, in the member's memory.
        cached_count: Messages received but not yet consumed.
        is_locked: Whether the member holds the queue's lock, which orderly consumers need.
        is_dropped: Whether the member gave the queue up.
        last_pull_timestamp: Time of the last pull, in milliseconds since 1970.
        last_consume_timestamp: Time of the last consumption, in milliseconds since 1970.
    """

    commit_offset: int
    cached_count: int
    is_locked: bool
    is_dropped: bool
    last_pull_timestamp: int
    last_consume_timestamp: int


@dataclass(frozen=True, slots=True)
class ConsumeStatus:
    """Rates of a consumer in a topic, in the last minute.

    Attributes:
        pull_rt: Milliseconds of a pull, on average.
        pull_tps: Messages pulled per second.
        consume_rt: Milliseconds of a call of the listener, on average.
        consume_ok_tps: Messages consumed per second.
        consume_failed_tps: Messages per second for which the listener failed.
        consume_failed_msgs: Messages of the last hour for which the listener failed.
    """

    pull_rt: float
    pull_tps: float
    consume_rt: float
    consume_ok_tps: float
    consume_failed_tps: float
    consume_failed_msgs: int


@dataclass(frozen=True, slots=True)
class ConsumerRunningInfo:
    """The state of a running consumer.

    Attributes:
        properties: Settings of the member, by RocketMQ's keys.
        subscriptions: Subscriptions of the member, by topic.
        queues: Queues that the member owns; empty for pull and lite pull consumers, which do not report queues.
        jstack: Stacks of the member's threads, if requested.
        status: Rates of the member, by topic; empty for pull and lite pull consumers.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    subscriptions: Mapping[str, SubscriptionData] = field(default_factory=dict)
    queues: Mapping[MessageQueue, ProcessQueueInfo] = field(default_factory=dict)
    jstack: str | None = None
    status: Mapping[str, ConsumeStatus] = field(default_factory=dict)

    def queues_of(self, topic: str) -> list[MessageQueue] | None:
        """Returns the consumer's queues of a topic. `None` if it reports no queues, as pull consumers do."""
        queues = sorted(queue for queue, info in self.queues.items() if queue.topic == topic and not info.is_dropped)
        tells = bool(self.queues) or self.properties.get("PROP_CONSUME_TYPE") == PASSIVELY
        return queues if tells else None

    @classmethod
    def of_body(cls, body: bytes) -> ConsumerRunningInfo:
        """Parses an answer. Raises `ResponseError` if it is malformed."""
        members = JsonObject.of_body(body, most=_MOST_BYTES)
        # A subscription without a version counts as the oldest.
        subscriptions = [
            SubscriptionData.from_json(item, now=0) for item in members.objects("subscriptionSet", most=_MOST)
        ]
        properties = members.object("properties")
        table = members.objects_by_queue("mqTable", most=_MOST)
        status = members.object("statusTable")
        return cls(
            properties={} if properties is None else properties.texts_by_text(),
            subscriptions={subscription.topic: subscription for subscription in subscriptions},
            queues={queue: _queue_info(item) for queue, item in table.items()},
            jstack=members.optional_text("jstack"),
            status={} if status is None else {name: _status(status.member(name)) for name in status.names()},
        )


def _queue_info(item: JsonObject) -> ProcessQueueInfo:
    return ProcessQueueInfo(
        commit_offset=item.number("commitOffset", 0),
        cached_count=item.number("cachedMsgCount", 0),
        is_locked=item.flag("locked"),
        # RocketMQ's spelling
        is_dropped=item.flag("droped"),
        last_pull_timestamp=item.number("lastPullTimestamp", 0),
        last_consume_timestamp=item.number("lastConsumeTimestamp", 0),
    )


def _status(item: JsonObject) -> ConsumeStatus:
    return ConsumeStatus(
        pull_rt=item.fraction("pullRT"),
        pull_tps=item.fraction("pullTPS"),
        consume_rt=item.fraction("consumeRT"),
        consume_ok_tps=item.fraction("consumeOKTPS"),
        consume_failed_tps=item.fraction("consumeFailedTPS"),
        consume_failed_msgs=item.number("consumeFailedMsgs", 0),
    )
