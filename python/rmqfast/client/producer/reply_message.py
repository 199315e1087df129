"""The reply to a message that asks for one: a message itself, which the broker hands to whoever asked.

Source: `MessageUtil`, `MixAll.getReplyTopic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rmqfast.client.instance import ClientErrorCode
from rmqfast.client.instance.request_futures import CORRELATION_ID
from rmqfast.errors import ClientError
from rmqfast.message import Message

REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
#: Milliseconds that who asked waits.
TTL = "TTL"
_MESSAGE_TYPE, _REPLY = "MSG_TYPE", "reply"
_CLUSTER = "CLUSTER"
_REPLY_TOPIC = "REPLY_TOPIC"


class _Received(Protocol):
    @property
    def properties(self) -> Mapping[str, str]: ...


def create_reply_message(request: _Received, body: bytes) -> Message:
    """The reply to a message that was sent by `Producer.request`; it is sent as any other message.

    Args:
        request: As a consumer got it.
        body: What is replied.

    Raises:
        ClientError: 10007: no broker says of the request which cluster it is of, as 4.6 and later do.

    Example:
        >>> from types import SimpleNamespace
        >>> asked = {"CLUSTER": "DefaultCluster", "CORRELATION_ID": "7", "REPLY_TO_CLIENT": "10.0.0.1@8", "TTL": "3000"}
        >>> create_reply_message(SimpleNamespace(properties=asked), b"yes").topic
        'DefaultCluster_REPLY_TOPIC'

    Source: `MessageUtil.createReplyMessage`.
    """
    if request is None:
        raise _error("requestMessage cannot be null.")
    asked = request.properties
    cluster = asked.get(_CLUSTER)
    if cluster is None:
        raise _error(f"requestMessage error, property[{_CLUSTER}] is null.")
    taken = {name: asked[name] for name in (CORRELATION_ID, REPLY_TO_CLIENT, TTL) if name in asked}
    return Message(f"{cluster}_{_REPLY_TOPIC}", body, properties={_MESSAGE_TYPE: _REPLY, **taken})


def is_reply(message: Message) -> bool:
    """Whether a message is a reply, which goes out by a request code of its own.

    Source: `MQClientAPIImpl.sendMessage`.
    """
    return bool(message.properties) and message.properties.get(_MESSAGE_TYPE) == _REPLY


def _error(what: str) -> ClientError:
    return ClientError(
        f"create reply message fail, {what}",
        response_code=ClientErrorCode.CREATE_REPLY_MESSAGE_EXCEPTION,
        next_step="reply to the message itself, as a consumer got it from a broker",
    )
