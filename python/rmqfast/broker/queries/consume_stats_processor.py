"""Answers requests for the bounds of queues, for the offsets of groups, and for how late groups consume.

Source: RocketMQ's `AdminBrokerProcessor`, `UtilAll`, `QueueTimeSpan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from rmqfast.broker.clients.consumer_manager import ConsumerManager
from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.offsets.consumer_offset_manager import ConsumerOffsetManager
from rmqfast.broker.queries.broker_details import BrokerDetails
from rmqfast.broker.statistics.broker_stats import BrokerStats
from rmqfast.broker.topics.subscription_group_manager import SubscriptionGroupManager
from rmqfast.broker.topics.topic_manager import TopicManager
from rmqfast.errors import ResponseError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import encode
from rmqfast.store import LiveStore, QueueTimes
from rmqfast.store.config import TopicConfig


class ConsumeStatsProcessor:
    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        topics: TopicManager,
        live: LiveStore,
        *,
        groups: SubscriptionGroupManager,
        consumers: ConsumerManager,
        offsets: ConsumerOffsetManager,
        stats: BrokerStats,
        details: BrokerDetails,
        now: Callable[[], int],
    ) -> None:
        self._config = config
        self._topics = topics
        self._groups = groups
        self._live = live
        self._consumers = consumers
        self._offsets = offsets
        self._stats = stats
        self._details = details
        self._now = now

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.GET_TOPIC_STATS_INFO: self.get_topic_stats_info,
            RequestCode.GET_CONSUME_STATS: self.get_consume_stats,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: self.query_topic_consume_by_who,
            RequestCode.QUERY_CONSUME_TIME_SPAN: self.query_consume_time_span,
            RequestCode.GET_BROKER_CONSUME_STATS: self.fetch_all_consume_stats_in_broker,
        }

    def get_topic_stats_info(self, request: Request) -> Response:
        """Answers request 202: the bounds of a topic's queues, and the store time of their last messages."""
        topic = existing_topic(self._topics, Header(request.ext_fields).text("topic"))
        table = {queue: self._topic_offset(queue) for queue in self._queues(topic, topic.write_queue_nums)}
        return Response(body=encode({"offsetTable": table}))

    def get_consume_stats(self, request: Request) -> Response:
        """Answers request 208: a group's offsets and the ends of the queues, in one or all of its topics."""
        header = Header(request.ext_fields)
        group, topic = header.text("consumerGroup"), header.optional_text("topic")
        offsets = self._offsets.of_group(group)
        names = [topic] if topic and topic.strip() else sorted(offsets)
        table: dict[MessageQueue, dict[str, int]] = {}
        tps = 0.0
        for config in self._topics_of(group, names):
            # As in 4.9.4: read queues here, write queues for request 317.
            table.update(self._offset_wrappers(config, config.read_queue_nums, offsets.get(config.topic_name, {})))
            tps += self._stats.tps_group_get_nums(group, config.topic_name)
        return Response(body=encode({"consumeTps": tps, "offsetTable": table}))

    def query_topic_consume_by_who(self, request: Request) -> Response:
        """Answers request 300: the groups that consume a topic or have consumed it."""
        topic = Header(request.ext_fields).text("topic")
        groups = self._consumers.groups_of_topic(topic) | self._offsets.groups_of(topic)
        return Response(body=encode({"groupList": sorted(groups)}))

    def fetch_all_consume_stats_in_broker(self, request: Request) -> Response:
        """Answers request 317: the same as 208 for all groups. With `isOrder`, only for ordered topics.

        With `isDetailed`, which only rmqfast has, also the store time of each queue's first message that the group has
        not passed, and the tables of `BrokerDetails`.
        """
        header = Header(request.ext_fields)
        only_order, is_detailed = header.flag("isOrder"), header.flag("isDetailed")
        names = sorted(group.group_name for group in self._groups.groups())
        offsets = self._offsets.by_group()
        stats = [
            {group: self._stats_of(group, offsets.get(group, {}), only_order=only_order, is_detailed=is_detailed)}
            for group in names
        ]
        wrappers = [wrapper for entry in stats for rows in entry.values() for row in rows for wrapper in _wrappers(row)]
        body: dict[str, Any] = {
            "brokerAddr": self._config().broker_address,
            "consumeStatsList": stats,
            "totalDiff": sum(wrapper["brokerOffset"] - wrapper["consumerOffset"] for wrapper in wrappers),
        }
        if is_detailed:
            body |= self._details.to_json()
        return Response(body=encode(body))

    def query_consume_time_span(self, request: Request) -> Response:
        """Answers request 303: store times of each queue's first, last and last consumed message, and the delay."""
        header = Header(request.ext_fields)
        topic, group = existing_topic(self._topics, header.text("topic")), header.text("group")
        queues = self._queues(topic, topic.write_queue_nums)
        return Response(body=encode({"consumeTimeSpanSet": [self._span(group, queue) for queue in queues]}))

    def _span(self, group: str, queue: MessageQueue) -> dict[str, Any]:
        topic, queue_id = queue.topic, queue.queue_id
        _, end = self._live.queue_bounds(topic, queue_id)
        consumed = self._offsets.offset(group, topic, queue_id)
        first = self._live.earliest_store_time(topic, queue_id)
        times = {
            "minTimeStamp": first,
            "maxTimeStamp": self._store_time(queue, end - 1),
            "consumeTimeStamp": self._store_time(queue, consumed - 1) if consumed > 0 else first,
        }
        texts = {f"{name}Str": time_text(time) for name, time in times.items()}
        # The age of the first message not yet consumed.
        delay = self._now() - self._store_time(queue, consumed) if consumed < end else 0
        return {"messageQueue": queue, "delayTime": delay} | times | texts

    def _store_time(self, queue: MessageQueue, offset: int) -> int:
        return self._live.store_time(queue.topic, queue.queue_id, offset) if offset >= 0 else -1

    def _stats_of(
        self, group: str, offsets: Mapping[str, Mapping[int, int]], *, only_order: bool, is_detailed: bool
    ) -> list[dict[str, Any]]:
        return [
            {
                "consumeTps": self._stats.tps_group_get_nums(group, topic.topic_name),
                "offsetTable": self._offset_wrappers(
                    topic, topic.write_queue_nums, offsets[topic.topic_name], is_detailed=is_detailed
                ),
            }
            for topic in self._topics_of(group, sorted(offsets))
            if topic.order or not only_order
        ]

    def _topics_of(self, group: str, names: Iterable[str]) -> Iterable[TopicConfig]:
        """Yields existing topics to which the group subscribes. If the group is offline, yields all existing topics."""
        for name in names:
            topic = self._topics.get(name)
            if topic and self._consumers.may_consume(group, name):
                yield topic

    def _offset_wrappers(
        self, topic: TopicConfig, count: int, offsets: Mapping[int, int], *, is_detailed: bool = False
    ) -> dict[MessageQueue, dict[str, int]]:
        consumed = {queue_id: max(0, offsets.get(queue_id, 0)) for queue_id in range(count)}
        progress = self._live.progress(topic.topic_name, consumed, unread=is_detailed)
        return {
            queue: _offset_wrapper(consumed[queue.queue_id], times, is_detailed=is_detailed)
            for queue, times in zip(self._queues(topic, count), progress, strict=True)
        }

    def _topic_offset(self, queue: MessageQueue) -> dict[str, int]:
        begin, end = self._live.queue_bounds(queue.topic, queue.queue_id)
        last = self._live.store_time(queue.topic, queue.queue_id, end - 1) if end > 0 else 0
        return {"minOffset": begin, "maxOffset": end, "lastUpdateTimestamp": last}

    def _queues(self, topic: TopicConfig, count: int) -> list[MessageQueue]:
        broker = self._config().text("brokerName")
        return [MessageQueue(topic.topic_name, broker, queue_id) for queue_id in range(count)]


def _offset_wrapper(consumed: int, times: QueueTimes, *, is_detailed: bool) -> dict[str, int]:
    last = max(0, times.passed_timestamp)
    wrapper = {"brokerOffset": times.end, "consumerOffset": consumed, "lastTimestamp": last}
    # Expired messages are none that the group could still read.
    if is_detailed and max(times.first, consumed) < times.end:
        wrapper["unreadTimestamp"] = max(0, times.unread_timestamp)
    return wrapper


def existing_topic(topics: TopicManager, name: str) -> TopicConfig:
    topic = topics.get(name)
    if topic is None:
        raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
    return topic


def time_text(time: int) -> str:
    """Formats milliseconds since 1970 as RocketMQ does, in local time."""
    try:
        moment = datetime.fromtimestamp(time // 1000)  # noqa: DTZ006  # people read local time
    except (OverflowError, ValueError, OSError):
        return str(time)
    return f"{moment:%Y-%m-%d#%H:%M:%S}:{time % 1000:03}"


def _wrappers(stats: dict[str, Any]) -> Iterable[dict[str, int]]:
    wrappers: dict[MessageQueue, dict[str, int]] = stats["offsetTable"]
    return wrappers.values()
