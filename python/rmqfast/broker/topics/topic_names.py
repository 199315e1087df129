"""Validates names of topics, and lists the broker's own topics.

Source: RocketMQ's `TopicValidator`.
"""

from __future__ import annotations

from collections.abc import Collection

from rmqfast._native import FORBIDDEN_TOPICS, SYSTEM_TOPICS, name_problem
from rmqfast.errors import ResponseError
from rmqfast.remoting import ResponseCode

AUTO_CREATE_TOPIC_KEY_TOPIC = "TBW102"
RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
TRANS_CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
#: Topics that hold waiting messages of other topics; their queues are kept even if no such topic is configured.
WAITING_TOPICS = frozenset({HALF_TOPIC, OP_TOPIC, SCHEDULE_TOPIC})
FAQ = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."


def system_topics(cluster_name: str, broker_name: str, trace_topic: str | None = None) -> list[str]:
    """Returns the broker's own topics, sorted."""
    traces = () if trace_topic is None else (trace_topic,)
    own = (cluster_name, broker_name, *traces, f"{cluster_name}_REPLY_TOPIC")
    return sorted({*SYSTEM_TOPICS, *own})


def validate_topic(topic: str | None) -> str:
    """Returns a legal topic name. Refuses other names with RocketMQ's text."""
    name = topic or ""
    problem = name_problem("new topic", name)
    if problem is not None:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, problem)
    return name


def refuse_system_topic(topic: str, system: Collection[str]) -> None:
    """Refuses a request to create, change or delete one of the broker's own topics."""
    if topic in system or topic.startswith(SYSTEM_TOPIC_PREFIX):
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"The topic[{topic}] is conflict with system topic.")


def refuse_not_allowed_send(topic: str) -> None:
    """Refuses sends to topics that only the broker itself writes."""
    if topic in FORBIDDEN_TOPICS:
        raise ResponseError(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")
