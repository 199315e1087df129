"""Single pulls by administrators: some messages of a queue, from an offset on."""

from __future__ import annotations

from typing import Any, NamedTuple

from rmqfast._native import decode_pull, pull_fields
from rmqfast.admin.admin_client import AdminClient
from rmqfast.admin.questions import Question
from rmqfast.client.instance.api import as_fields
from rmqfast.client.pulling.single_pulls import read_answer
from rmqfast.message import MessageQueue
from rmqfast.remoting import RequestCode, Response, ResponseCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

#: Group under which administrators pull; every broker has this group.
TOOLS_GROUP = "TOOLS_CONSUMER"
#: Messages that RocketMQ's brokers give at a time, at most.
PULL_SIZE = 32
#: Subscription without a filter.
WHOLE = SubscriptionData(topic="", sub_version=0)


class PulledMessages(NamedTuple):
    messages: list[Any]
    remark: str
    next_offset: int

    def at(self, offset: int) -> Any:
        return next((message for message in self.messages if message.queue_offset == offset), None)


def pull(
    client: AdminClient,
    address: str,
    queue: MessageQueue,
    offset: int,
    subscription: SubscriptionData,
    *,
    max_messages: int = 1,
) -> PulledMessages:
    """Pulls and returns messages that match a subscription, beginning at an offset."""
    question = pull_question(address, queue, offset, subscription, max_messages=max_messages)
    # Not `ask`, since an answer such as PULL_NOT_FOUND is no error here.
    fields = as_fields(question.ext_fields)
    answer = client.api.connections.request(address, question.code, fields, timeout=client.timeout)
    return read_pulled(queue, offset, address, answer)


def pull_question(
    address: str, queue: MessageQueue, offset: int, subscription: SubscriptionData = WHOLE, *, max_messages: int = 1
) -> Question:
    """Returns the request for messages that match a subscription, beginning at an offset."""
    fields = pull_fields(
        TOOLS_GROUP,
        queue,
        offset,
        max_messages,
        expression=subscription.sub_string,
        expression_type=subscription.expression_type,
        sub_version=subscription.sub_version,
    )
    return Question(address, RequestCode.PULL_MESSAGE, fields)


def read_pulled(
    queue: MessageQueue, offset: int, address: str, answer: Response, *, tags: frozenset[str] = frozenset()
) -> PulledMessages:
    """Returns the messages of an answer; with `tags`, only those with one of them.

    Raises `ResponseError` if the broker refused the pull.
    """
    fetched = read_answer(queue, offset, address, answer)
    # Without the properties MIN_OFFSET and MAX_OFFSET, so that the message equals one looked up by id.
    is_found = answer.code == ResponseCode.SUCCESS
    messages = decode_pull(answer.body, broker_name=queue.broker_name, tags=tags) if is_found else []
    return PulledMessages(messages, answer.remark or "", fetched.next_begin_offset)


def check_filter(client: AdminClient, address: str, subscription: SubscriptionData) -> None:
    """Raises `ResponseError` if a broker cannot filter by an SQL92 expression.

    To be asked first: a pull with an expression that does not compile would let every message pass.
    """
    client_id = client.instance.client_id
    client.api.check_client_config(address, TOOLS_GROUP, client_id, subscription, timeout=client.timeout)
