"""The copies of a message that members of a group sent back: delayed, to be consumed once more, or dead letters.

Source: `SendMessageProcessor.asyncConsumerSendMsgBack`, `ScheduleMessageService`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rmqfast.admin.asking import DLQ_PREFIX, RETRY_PREFIX, BrokerAddress
from rmqfast.admin.clusters import Clusters
from rmqfast.admin.facts import CopyFacts, CopyKind
from rmqfast.admin.members import Members
from rmqfast.errors import ResponseError
from rmqfast.remoting import ResponseCode

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LEVEL = re.compile(r"(\d{1,9})([smhd])")


class Copies(Members, Clusters):
    """Looks for what became of messages that were sent back."""

    def _copies(self, message: Any, group: str) -> list[CopyFacts]:
        """The copies of a message in a group, the oldest first; none where the message has no id of a producer."""
        retry, dead = RETRY_PREFIX + group, DLQ_PREFIX + group
        # a message goes back to its broker, or where that does not answer to another one of the topic of retries
        brokers = sorted({*self._brokers_of(message.topic), *self._brokers_if_there(retry)})
        delayed = [c for b in brokers for c in self._delayed(b, message, retry)]
        again = [self._retry(b, found, group) for b in brokers for found in self._found(b, retry, message.msg_id)]
        dead_brokers = sorted({*brokers, *self._brokers_if_there(dead)})
        ended = [_copy(CopyKind.DEAD, found) for b in dead_brokers for found in self._found(b, dead, message.msg_id)]
        delivered = {copy.reconsume_times for copy in again}
        waiting = [copy for copy in delayed if copy.reconsume_times not in delivered]
        return sorted([*waiting, *again, *ended], key=lambda copy: copy.store_timestamp)

    def _delayed(self, broker: BrokerAddress, message: Any, retry: str) -> list[CopyFacts]:
        found = [each for each in self._found(broker, SCHEDULE_TOPIC, message.msg_id) if _real_topic(each) == retry]
        if not found:
            return []
        levels = delay_levels(self.broker_config(broker.address).get("messageDelayLevel", DELAY_LEVELS))
        return [_copy(CopyKind.DELAYED, each, due=_due(each, levels)) for each in found]

    def _retry(self, broker: BrokerAddress, message: Any, group: str) -> CopyFacts:
        offset = self._api.query_consumer_offset(broker.address, group, message.queue, timeout=self._timeout)
        return _copy(CopyKind.RETRY, message, consumer_offset=offset)

    def _found(self, broker: BrokerAddress, topic: str, unique_key: str) -> list[Any]:
        return [each for each in self._query_at([broker], topic, unique_key) if each.msg_id == unique_key]

    def _brokers_if_there(self, topic: str) -> Iterable[BrokerAddress]:
        try:
            return self._brokers_of(topic)
        except ResponseError as error:
            if error.code == ResponseCode.TOPIC_NOT_EXIST:
                return []
            raise


def delay_levels(text: str) -> list[int]:
    """The times of delay levels in milliseconds, those of level 1 first.

    Example:
        >>> delay_levels("1s 5m 2h")
        [1000, 300000, 7200000]

    Source: `ScheduleMessageService.parseDelayLevel`.
    """
    found = [_LEVEL.fullmatch(word) for word in text.split()]
    return [int(match[1]) * _UNITS[match[2]] * 1000 for match in found if match is not None]


def _due(message: Any, levels: list[int]) -> int | None:
    level = message.queue_id  # of level n is queue n - 1
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
