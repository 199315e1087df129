"""Creates the topics and groups that are missing for a send or a pull, before the data plane answers it.

Source: RocketMQ's `AbstractSendMessageProcessor`, `SendMessageProcessor`, `PullMessageProcessor`.
"""

from __future__ import annotations

from rmqfast.broker.clients.name_quota import NameQuota
from rmqfast.broker.messages.send_back import target_of_send
from rmqfast.broker.messages.send_header import SendHeader
from rmqfast.broker.topics.subscription_group_manager import SubscriptionGroupManager
from rmqfast.broker.topics.topic_manager import TopicManager
from rmqfast.broker.topics.topic_names import FAQ
from rmqfast.errors import ResponseError
from rmqfast.remoting import Again, Header, Processor, Request, RequestCode, ResponseCode
from rmqfast.store.config import TopicConfig

#: Only come here if access control checks every request first.
_NEEDS_NOTHING = (
    RequestCode.QUERY_CONSUMER_OFFSET,
    RequestCode.UPDATE_CONSUMER_OFFSET,
    RequestCode.GET_MAX_OFFSET,
    RequestCode.GET_MIN_OFFSET,
)


class Preparation:
    """Creates missing topics and groups for requests of the data plane, and then gives the requests back to it."""

    def __init__(
        self, topics: TopicManager, groups: SubscriptionGroupManager, names: NameQuota, *, vip_port: int | None
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._names = names
        self._vip_suffix = f":{vip_port}"

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.SEND_MESSAGE: self.send,
            RequestCode.SEND_MESSAGE_V2: self.send,
            RequestCode.SEND_BATCH_MESSAGE: self.send,
            RequestCode.PULL_MESSAGE: self.pull,
            RequestCode.LITE_PULL_MESSAGE: self.pull,
            **dict.fromkeys(_NEEDS_NOTHING, lambda _: Again()),
        }

    def send(self, request: Request) -> Again:
        """Creates the topic of a send. After too many attempts, the send goes to the dead-letter topic instead."""
        header = SendHeader.parse(request.ext_fields, is_short=request.code != RequestCode.SEND_MESSAGE)
        self.topic_for(request, header)
        target = target_of_send(
            header.topic,
            header.queue_id,
            self._groups.find,
            self.make_topic,
            reconsume_times=header.reconsume_times or 0,
            own_limit=header.max_reconsume_times,
            version=request.version,
        )
        # No answer: the data plane processes the request again, now with an existing topic.
        return Again(None if target == (header.topic, header.queue_id) else target)

    def topic_for(self, request: Request, header: SendHeader) -> TopicConfig:
        """Returns the topic of a send, and creates it if it is missing."""
        return self._topics.create_for_send(
            header.topic,
            header.default_topic,
            header.default_topic_queue_nums,
            remote_address=request.channel.remote_address,
            unit_mode=header.is_unit,
            admit=lambda: self._names.take(request.channel),
        )

    def make_topic(self, name: str, queues: int, perm: int, sys_flag: int) -> TopicConfig | None:
        return self._topics.create_for_send_back(name, queues, perm=perm, sys_flag=sys_flag)

    def pull(self, request: Request) -> Again:
        """Creates the group of a pull if it is missing."""
        # RocketMQ's VIP listener does not accept pulls.
        if request.channel.local_address.endswith(self._vip_suffix):
            remark = f" request type {request.code} not supported"
            raise ResponseError(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
        group = Header(request.ext_fields).text("consumerGroup")
        if self._groups.find(group, lambda: self._names.take(request.channel)) is None:
            remark = f"subscription group [{group}] does not exist, {FAQ}"
            raise ResponseError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        return Again()
