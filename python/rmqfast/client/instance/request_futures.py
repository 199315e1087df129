"""Requests whose replies are waited for: replies come as messages, by way of the broker.

Source: `RequestFutureHolder`, `RequestResponseFuture`, `ClientRemotingProcessor.processReplyMessage`.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from typing import TypeAlias

from rmqfast._native import MessageView
from rmqfast.client.instance.pushed_reply import reply_of
from rmqfast.client.instance.scheduler import Scheduler
from rmqfast.errors import ChannelClosedError, RequestTimeoutError, RmqError
from rmqfast.remoting import Request, Response, ResponseCode

_log = logging.getLogger(__name__)

#: Takes how a request ended; is called once.
OnReply: TypeAlias = Callable[[MessageView | RmqError], object]

CORRELATION_ID = "CORRELATION_ID"


class RequestFutures:
    """The requests of a client instance that have no reply yet, by correlation id.

    Each ends once: by its reply, by its time, or by what kept it from being sent.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, OnReply] = {}
        self._own = Scheduler("rmqfast-replies")
        self._is_closed = self._is_told_later = False

    def __len__(self) -> int:
        return len(self._waiting)

    def open(self, on_reply: OnReply, *, timeout: float | None = None) -> str:
        """Adds a request; gives its correlation id.

        Args:
            on_reply: Takes the reply or the error. Without a timeout it is called by whoever ends the request, and must
                not wait; with one on a thread that only such calls are made on.
            timeout: When it ends by itself, in seconds.

        Source: `CorrelationIdUtil.createCorrelationId`.
        """
        correlation_id = str(uuid.uuid4())
        if timeout is None:
            self._waiting[correlation_id] = on_reply
        else:
            self._is_told_later = True
            self._waiting[correlation_id] = lambda ended: self._own.later(0.0, lambda: on_reply(ended))
            self._own.later(timeout, lambda: self._expire(correlation_id))
        if self._is_closed:
            self.end(correlation_id, _closed())
        return correlation_id

    def end(self, correlation_id: str, ended: MessageView | RmqError) -> bool:
        """Ends a request; gives whether it had not ended before."""
        on_reply = self._waiting.pop(correlation_id, None)
        if on_reply is not None:
            on_reply(ended)
        return on_reply is not None

    def forget(self, correlation_id: str) -> bool:
        """Nobody waits for the reply any more; gives whether it had not come yet."""
        return self._waiting.pop(correlation_id, None) is not None

    def receive(self, request: Request) -> Response:
        """Answers a broker that pushes a reply, whether anybody waits for it or not.

        Source: `ClientRemotingProcessor.receiveReplyMessage`.
        """
        try:
            reply = reply_of(request.ext_fields, request.body, now=time.time_ns() // 1_000_000)
        except RmqError:
            _log.warning("a reply of broker %s is none", request.channel.remote_address, exc_info=True)
            return Response(ResponseCode.SYSTEM_ERROR, "process reply message fail")
        correlation_id = reply.property(CORRELATION_ID)
        if correlation_id is None or not self.end(correlation_id, reply):
            _log.warning(
                "receive reply message, but not matched any request, CorrelationId: %s , reply from host: %s",
                correlation_id,
                reply.born_host,
            )
        return Response()

    def close(self) -> None:
        """Ends all requests: their client does."""
        self._is_closed = True
        for correlation_id in list(self._waiting):
            self.end(correlation_id, _closed())
        if self._is_told_later:
            self._own.later(0.0, lambda: self._own.stop(0))  # behind what is still to be told

    def _expire(self, correlation_id: str) -> None:
        self.end(correlation_id, RequestTimeoutError("request timeout, no reply message."))


def _closed() -> RmqError:
    return ChannelClosedError("the client was shut down while a reply was waited for")
