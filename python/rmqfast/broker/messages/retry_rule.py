"""Decides where a message goes that was consumed in vain: the retry topic or the dead letters of its group.

Source: RocketMQ's `SendMessageProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rmqfast.broker.topics.topic_names import DLQ_PREFIX, FAQ, RETRY_PREFIX
from rmqfast.errors import ResponseError
from rmqfast.remoting import ResponseCode
from rmqfast.store.config import SubscriptionGroupConfig, TopicConfig

__all__ = ["FindGroup", "MakeTopic", "RetryTarget", "retry_target", "target_of_send"]

DLQ_QUEUES = 1
#: Ordinal of 3.4.9, from which on a client's own limit of tries counts.
FIRST_VERSION_WITH_LIMIT = 121

#: A consumer group's configuration by its name, made on the way where the broker makes groups.
FindGroup = Callable[[str], SubscriptionGroupConfig | None]
#: A topic by its name; a new one gets these queues, permission and system flag. None where it cannot be made.
MakeTopic = Callable[[str, int, int, int], TopicConfig | None]


@dataclass(frozen=True, slots=True)
class RetryTarget:
    """The topic of a retry.

    Attributes:
        topic: The topic.
        is_dead: It is the group's dead-letter topic, whose queue is 0.
        delay_level: The level by which it is delayed; 0 for no delay.
    """

    topic: str
    is_dead: bool
    delay_level: int


def retry_target(
    group: SubscriptionGroupConfig, reconsume_times: int, delay_level: int, *, own_limit: int | None, version: int
) -> RetryTarget:
    """Chooses the topic for a message that a consumer sends back.

    `delay_level` 0 leaves the level to the broker, less than 0 gives the message up.

    Example:
        >>> group = SubscriptionGroupConfig(group_name="g")
        >>> retry_target(group, 2, 0, own_limit=None, version=401)
        RetryTarget(topic='%RETRY%g', is_dead=False, delay_level=5)
    """
    if reconsume_times >= limit_of(group, own_limit, version) or delay_level < 0:
        return RetryTarget(DLQ_PREFIX + group.group_name, is_dead=True, delay_level=0)
    # level 3 is 10 seconds: the first try again comes after that, the sixteenth after two hours
    return RetryTarget(RETRY_PREFIX + group.group_name, is_dead=False, delay_level=delay_level or 3 + reconsume_times)


def target_of_send(
    topic: str,
    queue_id: int,
    find_group: FindGroup,
    make_topic: MakeTopic,
    *,
    reconsume_times: int,
    own_limit: int | None,
    version: int,
) -> tuple[str, int]:
    """Returns topic and queue of a send: those it names, or the dead letters after too many tries.

    The message is delayed as its property DELAY says, in the dead-letter topic too: a real broker forgets that it meant
    to take the delay away. Only what begins with `%RETRY%` may go elsewhere.

    Raises:
        ResponseError: There is no such group (26), or no dead-letter topic (1).
    """
    if not topic.startswith(RETRY_PREFIX):
        return topic, queue_id
    group = group_or_error(topic.removeprefix(RETRY_PREFIX), find_group)
    if reconsume_times < limit_of(group, own_limit, version):
        return topic, queue_id
    dead = DLQ_PREFIX + group.group_name
    topic_or_error(dead, DLQ_QUEUES, 0, make_topic)
    return dead, 0


def limit_of(group: SubscriptionGroupConfig, own_limit: int | None, version: int) -> int:
    if own_limit is not None and version >= FIRST_VERSION_WITH_LIMIT:
        return own_limit
    return group.retry_max_times


def group_or_error(name: str, find_group: FindGroup) -> SubscriptionGroupConfig:
    group = find_group(name)
    if group is None:
        raise ResponseError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {name} {FAQ}")
    return group


def topic_or_error(name: str, queues: int, sys_flag: int, make_topic: MakeTopic) -> TopicConfig:
    topic = make_topic(name, queues, 6, sys_flag)
    if topic is None:
        raise ResponseError(ResponseCode.SYSTEM_ERROR, f"topic[{name}] not exist")
    return topic
