"""Finds the copies of a message that consumers sent back: delayed copies, retries and dead letters.

Source: `SendMessageProcessor.asyncConsumerSendMsgBack`, `ScheduleMessageService`.
"""

from __future__ import annotations

import re
from typing import Any

from rmqfast.admin.admin_client import DLQ_PREFIX, RETRY_PREFIX, AdminClient, BrokerAddress
from rmqfast.admin.clusters import Brokers
from rmqfast.admin.facts import CopyFacts, CopyKind
from rmqfast.admin.messages import query

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LEVEL = re.compile(r"(\d{1,9})([smhd])")


def copies_of(client: AdminClient, message: Any, group: str) -> list[CopyFacts]:
    """Returns the copies of a message in a group, oldest first; empty if the message has no id of a producer."""
    retry, dead = RETRY_PREFIX + group, DLQ_PREFIX + group
    # A message is sent back to its own broker or, if that is down, to another broker of the retry topic.
    brokers = sorted({*client.brokers_of(message.topic), *client.brokers_if_there(retry)})
    delayed = [copy for broker in brokers for copy in _delayed_copies(client, broker, message, retry)]
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
    retry_counts = {copy.reconsume_times for copy in retried}
    # A delayed copy stays in the log and its index after delivery to the retry topic.
    delayed_only = [copy for copy in delayed if copy.reconsume_times not in retry_counts]
    return sorted([*delayed_only, *retried, *dead_copies], key=lambda copy: copy.store_timestamp)


def _delayed_copies(client: AdminClient, broker: BrokerAddress, message: Any, retry: str) -> list[CopyFacts]:
    scheduled = [
        each for each in _with_key(client, broker, SCHEDULE_TOPIC, message.msg_id) if _real_topic(each) == retry
    ]
    if not scheduled:
        return []
    levels = delay_levels(Brokers(client).config(broker.address).get("messageDelayLevel", DELAY_LEVELS))
    return [_copy(CopyKind.DELAYED, each, due=_due(each, levels)) for each in scheduled]


def _retry(client: AdminClient, broker: BrokerAddress, message: Any, group: str) -> CopyFacts:
    offset = client.api.query_consumer_offset(broker.address, group, message.queue, timeout=client.timeout)
    return _copy(CopyKind.RETRY, message, consumer_offset=offset)


def _with_key(client: AdminClient, broker: BrokerAddress, topic: str, unique_key: str) -> list[Any]:
    # A copy keeps all properties of its message, so its UNIQ_KEY finds it in the index.
    return [each for each in query(client, [broker], topic, unique_key) if each.msg_id == unique_key]


def delay_levels(text: str) -> list[int]:
    """Parses `messageDelayLevel` to a list of milliseconds. The first entry is level 1."""
    matches = [_LEVEL.fullmatch(word) for word in text.split()]
    return [int(match[1]) * _UNITS[match[2]] * 1000 for match in matches if match is not None]


def _due(message: Any, levels: list[int]) -> int | None:
    level = message.queue_id  # queue n of the schedule topic holds delay level n + 1
    return message.store_timestamp + levels[level] if level < len(levels) else None


def _real_topic(message: Any) -> str | None:
    topic: str | None = message.property("REAL_TOPIC")
    return topic


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
