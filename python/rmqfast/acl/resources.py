"""Finds the topics and groups that a request touches, and the permissions that it needs for them.

Source: `PlainAccessValidator.parse`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from rmqfast.acl.permission import ANY, PUB, RETRY_PREFIX, SUB, retry_topic
from rmqfast.remoting import fastjson

#: The permission that is needed, by resource.
Needed: TypeAlias = dict[str, int]
#: Finds the resources of a request from its header fields and its body; `ValueError` and
#: `RemotingProtocolError` say that it makes no sense.
Resources: TypeAlias = Callable[[Mapping[str, str], bytes], Needed]

TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"


def sending(topic: str, group: str) -> Resources:
    """To send to a topic; what goes to a group's retry topic comes from a consumer of that group."""

    def needed(fields: Mapping[str, str], _body: bytes) -> Needed:
        name = fields.get(topic)
        if name is None:
            return {}
        if not name.startswith(RETRY_PREFIX):
            return {name: PUB}
        consumer_group = fields.get(group)
        return {} if consumer_group is None else {retry_topic(consumer_group): SUB}

    return needed


def consuming(*, topic: str | None = None, group: str | None = None) -> Resources:
    """To receive from a topic, as a group."""

    def needed(fields: Mapping[str, str], _body: bytes) -> Needed:
        resources = {}
        if topic is not None and (name := fields.get(topic)) is not None:
            resources[name] = SUB
        if group is not None and (name := fields.get(group)) is not None:
            resources[retry_topic(name)] = SUB
        return resources

    return needed


def knowing(fields: Mapping[str, str], _body: bytes) -> Needed:
    """To send to the topic of the header, or to receive from it."""
    topic = fields.get("topic")
    return {} if topic is None else {topic: ANY}


def heartbeat(_fields: Mapping[str, str], body: bytes) -> Needed:
    """To receive from all topics of all consumers in a heartbeat."""
    resources: Needed = {}
    for consumer in _entries(_members(body), "consumerDataSet"):
        group = _text(consumer, "groupName")
        if group is not None:
            resources[retry_topic(group)] = SUB
        for subscription in _entries(consumer, "subscriptionDataSet"):
            topic = _text(subscription, "topic")
            if topic is not None:
                resources[topic] = SUB
    return resources


def locking(_fields: Mapping[str, str], body: bytes) -> Needed:
    """To receive as the group in the body."""
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
