"""Answers requests for the bounds and the entries of consume queues.

Source: RocketMQ's `AdminBrokerProcessor`.
"""

from __future__ import annotations

from typing import Any

from rmqfast.broker.clients.consumer_manager import ConsumerManager
from rmqfast.broker.topics.topic_manager import TopicManager
from rmqfast.errors import ResponseError
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import encode
from rmqfast.store import LiveStore


class QueueBoundsProcessor:
    """Answers requests 29 and 32. A queue that does not exist counts as empty."""

    def __init__(self, live: LiveStore) -> None:
        self._live = live

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self.search_offset_by_timestamp,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self.get_earliest_msg_store_time,
        }

    def search_offset_by_timestamp(self, request: Request) -> Response:
        topic, queue_id = _queue(request)
        when = Header(request.ext_fields).number("timestamp")
        offset = 0 if queue_id < 0 else self._live.offset_for_time(topic, queue_id, when)
        return Response(ext_fields={"offset": str(offset)})

    def get_earliest_msg_store_time(self, request: Request) -> Response:
        """Answers request 32: the store time of a queue's first message, or -1 if the queue is empty."""
        topic, queue_id = _queue(request)
        time = -1 if queue_id < 0 else self._live.earliest_store_time(topic, queue_id)
        return Response(ext_fields={"timestamp": str(time)})


def _queue(request: Request) -> tuple[str, int]:
    header = Header(request.ext_fields)
    return header.text("topic"), header.integer("queueId")


#: Limit of units in one answer; RocketMQ accepts any `count`.
MAX_UNITS = 65_536
_NO_CODE_SET = "not set any response code"


class ConsumeQueueProcessor:
    def __init__(self, topics: TopicManager, live: LiveStore, consumers: ConsumerManager) -> None:
        self._topics = topics
        self._live = live
        self._consumers = consumers

    def processors(self) -> dict[int, Processor]:
        return {RequestCode.QUERY_CONSUME_QUEUE: self.query_consume_queue}

    def query_consume_queue(self, request: Request) -> Response:
        """Answers request 321: consume-queue entries, beginning at an offset, and the group's subscription."""
        header = Header(request.ext_fields)
        topic, queue_id = header.text("topic"), header.integer("queueId")
        index, count = header.number("index"), header.integer("count")
        if not self._is_queue(topic, queue_id):
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
        begin, end = self._live.queue_bounds(topic, queue_id)
        if not begin <= index < end:
            # Success without a body, as in 4.9.4; mqadmin prints the remark.
            return Response(ResponseCode.SUCCESS, f"Index {index} of {queue_id}@{topic} is not exist!")
        last = min(end, index + max(0, min(count, MAX_UNITS)))
        body = {
            "maxQueueIndex": end,
            "minQueueIndex": begin,
            "queueData": [self._unit(topic, queue_id, offset) for offset in range(index, last)],
        }
        body |= self._subscription(header.optional_text("consumerGroup"), topic)
        # The processor of 4.9.4 keeps this remark, which a new response has by default.
        return Response(ResponseCode.SUCCESS, _NO_CODE_SET, body=encode(body))

    def _is_queue(self, topic: str, queue_id: int) -> bool:
        if queue_id < 0:
            return False
        config = self._topics.get(topic)
        queues = 0 if config is None else max(config.read_queue_nums, config.write_queue_nums)
        return queue_id < queues or self._live.queue_bounds(topic, queue_id) != (0, 0)

    def _unit(self, topic: str, queue_id: int, offset: int) -> dict[str, Any]:
        physical, size, tags_code = self._live.unit(topic, queue_id, offset) or (0, 0, 0)
        return {"physicOffset": physical, "physicSize": size, "tagsCode": tags_code, "eval": False}

    def _subscription(self, group: str | None, topic: str) -> dict[str, Any]:
        if group is None:
            return {}
        subscription = self._consumers.subscription(group, topic)
        if subscription is None:
            return {"filterData": f"{group}@{topic} is not online!"}
        return {"subscriptionData": subscription.to_json(), "filterData": "null"}
