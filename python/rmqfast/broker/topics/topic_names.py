"""Validates topic names, and lists the topics that are the broker's own.

Source: `TopicValidator`.
"""

from __future__ import annotations

from collections.abc import Collection

from rmqfast.errors import ResponseError
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.hash_map import hash_order

AUTO_CREATE_TOPIC_KEY_TOPIC = "TBW102"
RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
#: Of RocketMQ 4.x, whose records have one signed byte for it.
MAX_TOPIC_LENGTH = 127
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
TRANS_CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
#: Buckets of the tables of topics and groups: RocketMQ makes both maps for 1,024 entries, and lists them in that order.
TABLE_BUCKETS = 2048
FAQ = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."

#: Topics that no client may send to.
NOT_ALLOWED_SEND_TOPICS = frozenset(
    {
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        OP_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
_SYSTEM_TOPICS = (
    AUTO_CREATE_TOPIC_KEY_TOPIC,
    SCHEDULE_TOPIC,
    "BenchmarkTest",
    HALF_TOPIC,
    "RMQ_SYS_TRACE_TOPIC",
    OP_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
)
_MARKS = frozenset("%|-_")


def system_topics(cluster_name: str, broker_name: str, trace_topic: str | None = None) -> list[str]:
    """The topics that are the broker's own, in the order in which RocketMQ lists them.

    Example:
        >>> system_topics("DefaultCluster", "broker-a")[:3]
        ['SCHEDULE_TOPIC_XXXX', 'RMQ_SYS_TRANS_HALF_TOPIC', 'RMQ_SYS_TRACE_TOPIC']
    """
    traces = () if trace_topic is None else (trace_topic,)
    own = (cluster_name, broker_name, *traces, f"{cluster_name}_REPLY_TOPIC")
    return hash_order(dict.fromkeys((*_SYSTEM_TOPICS, *own)))


def is_legal_name(name: str) -> bool:
    """Whether a topic or a group may have the name: letters, digits, `%`, `|`, `-`, `_`, and not none.

    Example:
        >>> is_legal_name("%RETRY%orders"), is_legal_name("../x"), is_legal_name("")
        (True, False, False)

    Source: `TopicValidator.isTopicOrGroupIllegal`.
    """
    # a name becomes a directory of the store: no separator and no dot can be in it
    return bool(name) and all(c.isascii() and (c.isalnum() or c in _MARKS) for c in name)


def validate_topic(topic: str | None) -> str:
    """The name, if a topic may have it.

    Raises:
        ResponseError: 1, with RocketMQ's remark.

    Source: `TopicValidator.validateTopic`.
    """
    if topic is None or not topic.strip():
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "The specified topic is blank.")
    if not is_legal_name(topic):
        remark = "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
        raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)
    if len(topic) > MAX_TOPIC_LENGTH:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, "The specified topic is longer than topic max length.")
    return topic


def refuse_system_topic(topic: str, system: Collection[str]) -> None:
    """Keeps clients from making, changing or deleting one of the broker's own topics.

    Raises:
        ResponseError: 1, with RocketMQ's remark.

    Source: `TopicValidator.isSystemTopic`.
    """
    if topic in system or topic.startswith(SYSTEM_TOPIC_PREFIX):
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"The topic[{topic}] is conflict with system topic.")


def refuse_not_allowed_send(topic: str) -> None:
    """Keeps clients from sending to topics that the broker itself writes.

    Raises:
        ResponseError: 16, with RocketMQ's remark.

    Source: `TopicValidator.isNotAllowedSendTopic`.
    """
    if topic in NOT_ALLOWED_SEND_TOPICS:
        raise ResponseError(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")
