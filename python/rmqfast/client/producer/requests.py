"""Requests that wait for the reply of a consumer, and the replies.

Source: `DefaultMQProducerImpl.request`, `prepareSendRequest`, `waitResponse`, `MessageUtil`, `MixAll.getReplyTopic`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Protocol, TypeAlias

from rmqfast._native import MessageView
from rmqfast.client.instance import ClientErrorCode
from rmqfast.client.instance.request_futures import CORRELATION_ID, OnReply, RequestFutures
from rmqfast.client.producer.send_result import SendCallback, SendResult
from rmqfast.errors import ClientError, RequestTimeoutError, RmqError
from rmqfast.message import Message
from rmqfast.system import monotonic
from rmqfast.threads import new_future

REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
#: Property with the requester's timeout in milliseconds.
TTL = "TTL"
#: Property that marks a reply for the native encoder, which sends replies with another request code.
_MESSAGE_TYPE, _REPLY = "MSG_TYPE", "reply"
_CLUSTER = "CLUSTER"
_REPLY_TOPIC = "REPLY_TOPIC"

#: Properties to add to a message before it is sent, by name.
Added: TypeAlias = list[tuple[str, str]]
#: Sends a message with further properties and a timeout in seconds; calls back with the result or error.
SendRequest: TypeAlias = Callable[[Added, SendCallback, float], None]


class _HasProperties(Protocol):
    @property
    def properties(self) -> Mapping[str, str]: ...


def request(send: SendRequest, futures: RequestFutures, client_id: str, topic: str, timeout: float) -> MessageView:
    """Sends a request and waits for its reply, which is returned."""
    deadline = monotonic() + timeout
    # the result may be an error, which is raised below with this call's traceback
    ended: Future[MessageView | RmqError] = new_future()
    correlation_id = futures.open(ended.set_result)
    try:
        send(_request_properties(correlation_id, client_id, timeout), _on_sent(futures, correlation_id, topic), timeout)
        # a reply may still arrive until the request is removed
        with suppress(TimeoutError):
            ended.result(max(0.0, deadline - monotonic()))
    finally:
        # removing the request from the table decides who ends it: the reply or this thread, never both
        was_open = futures.forget(correlation_id)
    if was_open:
        raise not_replied(topic, timeout)
    # the thread that removed the request is about to set the outcome
    outcome = ended.result()
    if isinstance(outcome, RmqError):
        raise outcome
    return outcome


def request_async(  # noqa: PLR0917 - the parameters of `request`, and a callback
    send: SendRequest, futures: RequestFutures, client_id: str, topic: str, timeout: float, on_done: OnReply
) -> None:
    """Sends a request. `on_done` is called with the reply or the error, unless this function raises."""
    correlation_id = futures.open(on_done, timeout=timeout)
    try:
        send(_request_properties(correlation_id, client_id, timeout), _on_sent(futures, correlation_id, topic), timeout)
    except BaseException:
        futures.forget(correlation_id)
        raise


def not_replied(topic: str, timeout: float) -> RequestTimeoutError:
    """Returns the error for a request without a reply within `timeout` seconds."""
    return RequestTimeoutError(
        f"send request message to <{topic}> OK, but wait reply message timeout, {timeout * 1000:.0f} ms.",
        next_step="see that a consumer of the topic replies with create_reply_message, or wait for longer",
    )


def create_reply_message(request: _HasProperties, body: bytes) -> Message:
    """Creates the reply to a message that `Producer.request` sent. Send the reply like any other message.

    Args:
        request: The request as the consumer got it.
        body: Body of the reply.

    Raises:
        ClientError: 10007: the request has no property CLUSTER, which brokers set since 4.6.

    Example:
        >>> from types import SimpleNamespace
        >>> asked = {"CLUSTER": "DefaultCluster", "CORRELATION_ID": "7", "REPLY_TO_CLIENT": "10.0.0.1@8", "TTL": "3000"}
        >>> create_reply_message(SimpleNamespace(properties=asked), b"yes").topic
        'DefaultCluster_REPLY_TOPIC'
    """
    if request is None:
        raise _no_reply("requestMessage cannot be null.")
    asked = request.properties
    cluster = asked.get(_CLUSTER)
    if cluster is None:
        raise _no_reply(f"requestMessage error, property[{_CLUSTER}] is null.")
    # the broker finds the requesting client by these properties, and the client its request
    taken = {name: asked[name] for name in (CORRELATION_ID, REPLY_TO_CLIENT, TTL) if name in asked}
    return Message(f"{cluster}_{_REPLY_TOPIC}", body, properties={_MESSAGE_TYPE: _REPLY, **taken})


def _request_properties(correlation_id: str, client_id: str, timeout: float) -> Added:
    return [(CORRELATION_ID, correlation_id), (REPLY_TO_CLIENT, client_id), (TTL, f"{timeout * 1000:.0f}")]


def _on_sent(futures: RequestFutures, correlation_id: str, topic: str) -> SendCallback:
    def ended(sent: SendResult | RmqError) -> None:
        if isinstance(sent, RmqError):
            error = ClientError(f"send request message to <{topic}> fail", next_step=str(sent))
            error.__cause__ = sent
            # the request fails at once instead of waiting for a reply
            futures.end(correlation_id, error)

    return ended


def _no_reply(what: str) -> ClientError:
    return ClientError(
        f"create reply message fail, {what}",
        response_code=ClientErrorCode.CREATE_REPLY_MESSAGE_EXCEPTION,
        next_step="reply to the message itself, as a consumer got it from a broker",
    )
