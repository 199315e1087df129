"""Creates the topics and groups that a send or a pull needs; parses the header of SEND_MESSAGE.

Source: RocketMQ's `SendMessageRequestHeader`, `SendMessageRequestHeaderV2`, `AbstractSendMessageProcessor`,
`SendMessageProcessor`, `PullMessageProcessor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rmqfast.broker.clients.name_quota import NameQuota
from rmqfast.broker.messages.send_back import target_of_send
from rmqfast.broker.topics.subscription_group_manager import SubscriptionGroupManager
from rmqfast.broker.topics.topic_manager import FAQ, TopicManager
from rmqfast.errors import ResponseError
from rmqfast.remoting import Again, Header, Processor, Request, RequestCode, ResponseCode
from rmqfast.store.config import TopicConfig

_NAMES = (
    "producerGroup",
    "topic",
    "defaultTopic",
    "defaultTopicQueueNums",
    "queueId",
    "sysFlag",
    "bornTimestamp",
    "flag",
    "properties",
    "reconsumeTimes",
    "unitMode",
    "maxReconsumeTimes",
    "batch",
)
#: SEND_MESSAGE_V2 and batches call the fields a to m, in this order.
_LONG_NAMES = dict(zip("abcdefghijklm", _NAMES, strict=True))


@dataclass(frozen=True, slots=True)
class SendHeader:
    """The header of a send.

    Attributes:
        default_topic: Topic whose settings a new topic inherits.
        queue_id: The queue; a negative one lets the broker choose.
        born_timestamp: Creation time at the client, in milliseconds since 1970.
        reconsume_times: Number of failed attempts to consume the message.
        max_reconsume_times: The client's own limit of attempts.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: int
    queue_id: int
    sys_flag: int
    born_timestamp: int
    flag: int
    properties: str
    reconsume_times: int | None
    is_unit: bool
    max_reconsume_times: int | None
    is_batch: bool

    @classmethod
    def parse(cls, ext_fields: Mapping[str, str], *, is_short: bool) -> SendHeader:
        """Parses the header of a request. Raises `ResponseError` for a missing or malformed field."""
        # Ignore long names in a short header, since access control checked only the short ones.
        of_short = {long: ext_fields[name] for name, long in _LONG_NAMES.items() if name in ext_fields}
        header = Header(of_short if is_short else ext_fields)
        return cls(
            producer_group=header.text("producerGroup"),
            topic=header.text("topic"),
            default_topic=header.text("defaultTopic"),
            default_topic_queue_nums=header.number("defaultTopicQueueNums"),
            queue_id=header.number("queueId"),
            sys_flag=header.number("sysFlag"),
            born_timestamp=header.number("bornTimestamp"),
            flag=header.number("flag"),
            properties=header.optional_text("properties") or "",
            reconsume_times=_optional_number(header, "reconsumeTimes"),
            is_unit=header.flag("unitMode"),
            max_reconsume_times=_optional_number(header, "maxReconsumeTimes"),
            is_batch=header.flag("batch"),
        )

    def to_fields(self) -> dict[str, str]:
        """Returns the fields under their long names. Fields without a value are left out."""
        texts = {
            "producerGroup": self.producer_group,
            "topic": self.topic,
            "defaultTopic": self.default_topic,
            "defaultTopicQueueNums": str(self.default_topic_queue_nums),
            "queueId": str(self.queue_id),
            "sysFlag": str(self.sys_flag),
            "bornTimestamp": str(self.born_timestamp),
            "flag": str(self.flag),
            "properties": self.properties,
            "unitMode": str(self.is_unit).lower(),
        }
        return texts if self.reconsume_times is None else texts | {"reconsumeTimes": str(self.reconsume_times)}


def _optional_number(header: Header, name: str) -> int | None:
    return None if header.optional_text(name) is None else header.number(name)


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
        """Creates the topic of a send. A retry that has failed too often goes to the dead-letter topic instead."""
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
