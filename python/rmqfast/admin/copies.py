"""Copies of a message that a group sent back: delayed, in its retry topic, and dead.

Source: `SendMessageProcessor.asyncConsumerSendMsgBack`, `ScheduleMessageService`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rmqfast.admin.admin_client import DLQ_PREFIX, RETRY_PREFIX, AdminClient, BrokerAddress
from rmqfast.admin.clusters import Brokers
from rmqfast.admin.facts import CopyFacts, CopyKind
from rmqfast.admin.messages import query
from rmqfast.errors import ArgumentError
from rmqfast.store.config.delay_levels import SCHEDULE_TOPIC, DelayLevels


def copies_of(client: AdminClient, message: Any, group: str) -> list[CopyFacts]:
    """Returns the copies of a message that a group sent back, oldest first. Empty without a producer's message id."""
    retry, dead = RETRY_PREFIX + group, DLQ_PREFIX + group
    # A message is sent back to its own broker or, if that is down, to another broker of the retry topic.
    brokers = sorted({*client.brokers_of(message.topic), *client.brokers_if_there(retry)})
    delayed = [copy for broker in brokers for copy in _delayed_copies(client, broker, message, group)]
    retried = [
        _retry(client, broker, each, group)
        for broker in brokers
        for each in _with_key(client, broker, retry, message.msg_id)
    ]
    dead_brokers = sorted({*brokers, *client.brokers_if_there(dead)})
    dead_copies = [
        _copy(CopyKind.DEAD, each)
        for broker in dead_brokers
        for each in _with_key(client, broker, dead, message.msg_id)
    ]
    delivered = {
        *((CopyKind.DELAYED, copy.reconsume_times) for copy in retried),
        *((CopyKind.DEAD, copy.reconsume_times) for copy in dead_copies),
    }
    # A delayed copy stays in the log and its index after its delivery.
    delayed_only = [copy for copy in delayed if (copy.kind, copy.reconsume_times) not in delivered]
    return sorted([*delayed_only, *retried, *dead_copies], key=lambda copy: copy.store_timestamp)


def _delayed_copies(client: AdminClient, broker: BrokerAddress, message: Any, group: str) -> list[CopyFacts]:
    # Orderly consumers send dead letters with a delay, too.
    kinds = {RETRY_PREFIX + group: CopyKind.DELAYED, DLQ_PREFIX + group: CopyKind.DEAD}
    scheduled = [
        each for each in _with_key(client, broker, SCHEDULE_TOPIC, message.msg_id) if _real_topic(each) in kinds
    ]
    if not scheduled:
        return []
    levels = _levels_at(client, broker)
    return [_copy(kinds[_real_topic(each)], each, due=_due(each, levels)) for each in scheduled]


def _retry(client: AdminClient, broker: BrokerAddress, message: Any, group: str) -> CopyFacts:
    offset = client.api.query_consumer_offset(broker.address, group, message.queue, timeout=client.timeout)
    return _copy(CopyKind.RETRY, message, consumer_offset=offset)


def _with_key(client: AdminClient, broker: BrokerAddress, topic: str, unique_key: str) -> list[Any]:
    # A copy keeps all properties of its message, so its UNIQ_KEY finds it in the index.
    return [each for each in query(client, [broker], topic, unique_key) if each.msg_id == unique_key]


def _levels_at(client: AdminClient, broker: BrokerAddress) -> Mapping[int, int]:
    """Returns the delays of a broker's levels. Empty if it does not tell them: when a copy is due is unknown then."""
    try:
        text = Brokers(client).config(broker.address).get("messageDelayLevel")
        return DelayLevels() if text is None else DelayLevels(text)
    except ArgumentError:
        return {}


def _due(message: Any, levels: Mapping[int, int]) -> int | None:
    delay = levels.get(message.queue_id + 1)
    return None if delay is None else message.store_timestamp + delay


def _real_topic(message: Any) -> str:
    topic: str | None = message.property("REAL_TOPIC")
    return topic or ""


def _copy(kind: CopyKind, message: Any, *, due: int | None = None, consumer_offset: int | None = None) -> CopyFacts:
    return CopyFacts(
        kind=kind,
        queue=message.queue,
        queue_offset=message.queue_offset,
        reconsume_times=message.reconsume_times,
        store_timestamp=message.store_timestamp,
        due_timestamp=due,
        consumer_offset=consumer_offset,
    )
