"""Answers the requests that create, change, delete and list topics.

Source: RocketMQ's `AdminBrokerProcessor`, `CreateTopicRequestHeader`.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.offsets.consumer_offset_manager import ConsumerOffsetManager
from rmqfast.broker.statistics.broker_stats import BrokerStats
from rmqfast.broker.topics.topic_manager import TopicManager, refuse_system_topic, validate_topic
from rmqfast.errors import ResponseError
from rmqfast.logs import logger_of
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import encode
from rmqfast.store import WritableStore
from rmqfast.store.config import TopicConfig

_log = logger_of(__name__)
GET_TOPIC_CONFIG = 351
MAX_QUEUES = 65_536
_PERMISSIONS = 7
_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")
_NO_CODE_SET = "not set any response code"


class TopicProcessor:
    """Answers requests 17, 215, 21 and 305, and 351 of RocketMQ 5."""

    def __init__(
        self,
        topics: TopicManager,
        offsets: ConsumerOffsetManager,
        store: WritableStore,
        stats: BrokerStats,
        config: Callable[[], BrokerConfig],
        *,
        on_delete: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._on_delete = on_delete
        self._topics = topics
        self._offsets = offsets
        self._store = store
        self._stats = stats
        self._config = config

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.UPDATE_AND_CREATE_TOPIC: self.update_and_create_topic,
            RequestCode.DELETE_TOPIC_IN_BROKER: self.delete_topic,
            RequestCode.GET_ALL_TOPIC_CONFIG: self.get_all_topic_config,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: self.get_system_topic_list,
            GET_TOPIC_CONFIG: self.get_topic_config,
        }

    def update_and_create_topic(self, request: Request) -> Response:
        """Answers request 17: creates or changes a topic. Name servers decide whether the topic is ordered."""
        header = Header(request.ext_fields)
        filter_type = _filter_type(header)
        name = self._client_topic(header)
        topic = TopicConfig(
            topic_name=name,
            read_queue_nums=_between(header, "readQueueNums", MAX_QUEUES),
            write_queue_nums=_between(header, "writeQueueNums", MAX_QUEUES),
            perm=_between(header, "perm", _PERMISSIONS),
            topic_filter_type=filter_type,
            topic_sys_flag=header.integer("topicSysFlag", 0),
        )
        _log.info("%s makes or changes %s", request.channel.remote_address, topic)
        self._topics.update(topic)
        # The processor of RocketMQ keeps this remark, which a new response has by default.
        return Response(ResponseCode.SUCCESS, _NO_CODE_SET)

    def delete_topic(self, request: Request) -> Response:
        """Answers request 215: deletes a topic, its queues, and the groups' offsets for it.

        4.9.4 keeps the offsets, so that a group skips the first messages if the topic is created again.
        """
        name = self._client_topic(Header(request.ext_fields))
        _log.info("%s deletes the topic %s", request.channel.remote_address, name)
        # Delete the topic first, so that no send arrives while its queues are removed.
        self._topics.delete(name)
        self._topics.hold(self._store.clean_unused_topics)
        self._offsets.remove_topic(name)
        self._on_delete(name)
        if self._config().flag("autoDeleteUnusedStats"):
            self._stats.on_topic_deleted(name)
        return Response()

    def get_all_topic_config(self, _request: Request) -> Response:
        return Response(ext_fields={}, body=encode(self._topics.wrapper()))

    def get_system_topic_list(self, _request: Request) -> Response:
        return Response(body=encode({"topicList": self._topics.system_topics}))

    def get_topic_config(self, request: Request) -> Response:
        name = Header(request.ext_fields).text("topic")
        topic = self._topics.get(name)
        if topic is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {name}")
        return Response(body=encode({"attributes": {}} | topic.to_json()))

    def _client_topic(self, header: Header) -> str:
        name = validate_topic(header.optional_text("topic"))
        refuse_system_topic(name, self._topics.system_topics)
        return name


def _filter_type(header: Header) -> str:
    text = header.optional_text("topicFilterType")
    if text not in _FILTER_TYPES:
        remark = f"topicFilterType = [{'null' if text is None else text[:100]}] value invalid"
        raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)
    return text


def _between(header: Header, name: str, most: int) -> int:
    value = header.integer(name)
    if not 0 <= value <= most:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"{name}: expected 0 to {most}, got {value}")
    return value
