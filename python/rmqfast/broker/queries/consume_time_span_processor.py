"""Answers of which time the messages of a topic are, and how far behind a group is.

Source: `AdminBrokerProcessor.queryConsumeTimeSpan`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from rmqfast.broker.clients.consumers import CommittedOffsets
from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.queries.consume_stats_processor import existing_topic
from rmqfast.broker.topics.topic_manager import TopicManager
from rmqfast.message import MessageQueue
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response
from rmqfast.remoting.fastjson import encode
from rmqfast.store import LiveStore


class ConsumeTimeSpanProcessor:
    """Request 303."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        topics: TopicManager,
        live: LiveStore,
        offsets: CommittedOffsets,
        *,
        now: Callable[[], int],
    ) -> None:
        self._config = config
        self._topics = topics
        self._live = live
        self._offsets = offsets
        self._now = now

    def processors(self) -> dict[int, Processor]:
        """Who answers, by request code."""
        return {RequestCode.QUERY_CONSUME_TIME_SPAN: self.query_consume_time_span}

    def query_consume_time_span(self, request: Request) -> Response:
        """303: for each queue the times of its first and last message, of the one consumed last, and the delay.

        Raises:
            ResponseError: 17 for a topic that is not there.
        """
        header = Header(request.ext_fields)
        topic, group = existing_topic(self._topics, header.text("topic")), header.text("group")
        broker, name = self._config().text("brokerName"), topic.topic_name
        queues = [MessageQueue(name, broker, queue_id) for queue_id in range(topic.write_queue_nums)]
        return Response(body=encode({"consumeTimeSpanSet": [self._span(group, queue) for queue in queues]}))

    def _span(self, group: str, queue: MessageQueue) -> dict[str, Any]:
        topic, queue_id = queue.topic, queue.queue_id
        _, end = self._live.queue_bounds(topic, queue_id)
        consumed = self._offsets.committed(group, topic, queue_id)
        first = self._live.earliest_store_time(topic, queue_id)
        times = {
            "minTimeStamp": first,
            "maxTimeStamp": self._store_time(queue, end - 1),
            "consumeTimeStamp": self._store_time(queue, consumed - 1) if consumed > 0 else first,
        }
        texts = {f"{name}Str": time_text(time) for name, time in times.items()}
        delay = self._now() - self._store_time(queue, consumed) if consumed < end else 0
        return {"messageQueue": queue, "delayTime": delay} | times | texts

    def _store_time(self, queue: MessageQueue, offset: int) -> int:
        return self._live.store_time(queue.topic, queue.queue_id, offset) if offset >= 0 else -1


def time_text(time: int) -> str:
    """Milliseconds since 1970 as RocketMQ writes them for people, in local time.

    Source: `UtilAll.timeMillisToHumanString2` with the pattern of `QueueTimeSpan`.
    """
    try:
        moment = datetime.fromtimestamp(time // 1000)  # noqa: DTZ006 - local time is what people read
    except (OverflowError, ValueError, OSError):
        return str(time)
    return f"{moment:%Y-%m-%d#%H:%M:%S}:{time % 1000:03}"
