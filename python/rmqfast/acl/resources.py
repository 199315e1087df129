"""Finds the topics and groups that a request uses, and the permissions that it needs for them.

`java_sending`, `consuming`, `heartbeat` and `locking` check what the broker of 4.9.4 checks. The other functions also
check the group of a retry or dead-letter topic, the further queues of multi-dispatch, and the topic of a stored
message.

Source: `PlainAccessValidator.parse`, `MessageDecoder.encodeMessage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from rmqfast.acl.permission import ANY, EXPLICIT, PUB, RETRY_PREFIX, SUB, retry_topic
from rmqfast.remoting import fastjson

#: Needed permission by resource.
Permissions: TypeAlias = dict[str, int]
#: Finds the resources of a request from header fields and body; raises `ValueError` or `RemotingProtocolError` for
#: a malformed request.
Resources: TypeAlias = Callable[[Mapping[str, str], bytes], Permissions]

TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
#: Topics that hold messages of all topics, so that a default permission does not suffice to read them.
WAITING_TOPICS = {HALF_TOPIC, "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC"}
DLQ_PREFIX = "%DLQ%"
#: Suffix of a cluster's reply topic; any client may answer a request.
REPLY_SUFFIX = "_REPLY_TOPIC"
MULTI_DISPATCH = "INNER_MULTI_DISPATCH"


class RecordTopics(NamedTuple):
    """The topics of a stored message, by which access to the message is checked.

    `stored` is the topic in the store, such as that of half messages; `real` the target topic of a waiting message, or
    `None`.
    """

    stored: str
    real: str | None


#: Returns the topics of the message at an offset of the log; None if no message begins there.
TopicsAt: TypeAlias = Callable[[int], RecordTopics | None]
#: Finds the resources of a request that names a stored message.
RecordResources: TypeAlias = Callable[[Mapping[str, str], TopicsAt], Permissions]


def sending(topic: str, group: str, properties: str, *, has_batch: bool = False) -> Resources:
    """Finds the permissions for a send: PUB for the topic, and for the further queues of a multi-dispatch message."""
    as_java = java_sending(topic, group)

    def find(fields: Mapping[str, str], body: bytes) -> Permissions:
        name = fields.get(topic)
        resources = {} if name is None else as_java(fields, body) | _to_send(name)
        texts = [fields.get(properties, ""), *(batch_properties(body) if has_batch else ())]
        for further in _further_queues(texts):
            resources |= _to_send(further)
        return resources

    return find


def replying(topic: str, group: str, properties: str) -> Resources:
    """Finds the permissions for a reply: as `sending`, but none for a reply topic, since any client may reply."""
    sent = sending(topic, group, properties)

    def find(fields: Mapping[str, str], body: bytes) -> Permissions:
        resources = sent(fields, body)
        name = fields.get(topic, "")
        return {key: value for key, value in resources.items() if key != name or not name.endswith(REPLY_SUFFIX)}

    return find


def receiving(*, topic: str | None = None, group: str | None = None) -> Resources:
    """Finds the permissions to receive: SUB for the topic, the group, and the group of a dead-letter topic."""
    as_java = consuming(topic=topic, group=group)

    def find(fields: Mapping[str, str], body: bytes) -> Permissions:
        name = None if topic is None else fields.get(topic)
        return as_java(fields, body) | ({} if name is None else _to_receive(name))

    return find


def member(fields: Mapping[str, str], body: bytes) -> Permissions:
    """Returns the permissions for a heartbeat: SUB for its groups and topics, and for groups of dead-letter topics."""
    resources = heartbeat(fields, body)
    for name in list(resources):
        resources |= _to_receive(name)
    return resources


def sending_back(fields: Mapping[str, str], topics_at: TopicsAt) -> Permissions:
    """Returns the permissions to send a message back: SUB for its topics, since its receivers may send it back."""
    topics = _topics_at(fields.get("offset"), topics_at)
    if topics is None:
        return {}
    return _to_receive(topics.stored) | ({} if topics.real is None else _to_receive(topics.real))


def ending(fields: Mapping[str, str], topics_at: TopicsAt) -> Permissions:
    """Returns the permissions to end a transaction: PUB for the topic to which its message is sent."""
    topics = _topics_at(fields.get("commitLogOffset"), topics_at)
    return {} if topics is None or topics.stored != HALF_TOPIC or topics.real is None else {topics.real: PUB}


def java_sending(topic: str, group: str) -> Resources:
    """Finds the permissions that 4.9.4 requires for a send: PUB for the topic, SUB for the group of a retry topic."""

    def find(fields: Mapping[str, str], _body: bytes) -> Permissions:
        name = fields.get(topic)
        if name is None:
            return {}
        if not name.startswith(RETRY_PREFIX):
            return {name: PUB}
        consumer_group = fields.get(group)
        return {} if consumer_group is None else {retry_topic(consumer_group): SUB}

    return find


def consuming(*, topic: str | None = None, group: str | None = None) -> Resources:
    """Finds the permissions that 4.9.4 requires to consume: SUB for the topic and the group."""

    def find(fields: Mapping[str, str], _body: bytes) -> Permissions:
        resources = {}
        if topic is not None and (name := fields.get(topic)) is not None:
            resources[name] = SUB
        if group is not None and (name := fields.get(group)) is not None:
            resources[retry_topic(name)] = SUB
        return resources

    return find


def knowing(fields: Mapping[str, str], _body: bytes) -> Permissions:
    topic = fields.get("topic")
    return {} if topic is None else {topic: ANY}


def heartbeat(_fields: Mapping[str, str], body: bytes) -> Permissions:
    """Returns the permissions that 4.9.4 requires for a heartbeat: SUB for all its groups and topics."""
    resources: Permissions = {}
    for consumer in _entries(_members(body), "consumerDataSet"):
        group = _text(consumer, "groupName")
        if group is not None:
            resources[retry_topic(group)] = SUB
        for subscription in _entries(consumer, "subscriptionDataSet"):
            topic = _text(subscription, "topic")
            if topic is not None:
                resources[topic] = SUB
    return resources


def locking(_fields: Mapping[str, str], body: bytes) -> Permissions:
    group = _text(_members(body), "consumerGroup")
    return {} if group is None else {retry_topic(group): SUB}


def _members(body: bytes) -> Mapping[str, Any]:
    members = fastjson.decode(body)
    if not isinstance(members, dict):
        raise ValueError("the body is no object")  # noqa: TRY004 - bytes of a client, not a type of ours
    return members


def _entries(members: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    entries = members.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{name} is no list of objects")
    return entries


def _text(members: Mapping[str, Any], name: str) -> str | None:
    text = members.get(name)
    if text is not None and not isinstance(text, str):
        raise ValueError(f"{name} is no text")
    return text


def batch_properties(body: bytes) -> Iterator[str]:
    """Yields the properties of each message of a batch, up to the first malformed message."""
    at = 0
    # Parse messages only if the batch mentions multi-dispatch at all.
    while MULTI_DISPATCH.encode() in body and len(body) - at >= _BATCH_HEADER:
        size = int.from_bytes(body[at : at + 4], "big")
        length = int.from_bytes(body[at + 16 : at + 20], "big")
        if size < _BATCH_HEADER + length or size > len(body) - at:
            return
        yield body[at + _BATCH_HEADER + length : at + size].decode("utf-8", "replace")
        at += size


#: Fixed bytes of a message in a batch, without body and properties.
_BATCH_HEADER = 22


def _further_queues(properties: list[str]) -> Iterator[str]:
    """Yields the additional queues that list a multi-dispatch message."""
    for text in properties:
        for part in text.split("\2"):
            name, _, queues = part.partition("\1")
            if name == MULTI_DISPATCH and queues:
                yield from queues.split(",")


def _to_send(topic: str) -> Permissions:
    if topic.startswith(RETRY_PREFIX):
        # Sending a message back is part of consuming.
        return {topic: SUB}
    return {topic: PUB} | _to_get_dead_letters(topic)


def _to_receive(topic: str) -> Permissions:
    if topic in WAITING_TOPICS:
        return {topic: SUB | EXPLICIT}
    return {topic: SUB} | _to_get_dead_letters(topic)


def _to_get_dead_letters(topic: str) -> Permissions:
    return {retry_topic(topic.removeprefix(DLQ_PREFIX)): SUB} if topic.startswith(DLQ_PREFIX) else {}


def _topics_at(offset: str | None, topics_at: TopicsAt) -> RecordTopics | None:
    """Returns the topics of the record at an offset. `None` if no record begins there, or the offset is malformed."""
    is_number = offset is not None and offset.isascii() and offset.isdigit() and len(offset) <= len(str(1 << 63))
    return topics_at(int(offset)) if offset is not None and is_number else None
