"""Matches replies, which brokers push to a client, with the requests that wait for them.

Source: `RequestFutureHolder`, `RequestResponseFuture`, `ClientRemotingProcessor.processReplyMessage`,
`CorrelationIdUtil`.
"""

from __future__ import annotations

import struct
import time
import uuid
import zlib
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple, TypeAlias

from rmqfast._native import MessageView
from rmqfast.client.instance.broker_requests import decode_message
from rmqfast.client.instance.scheduler import Scheduler
from rmqfast.errors import ChannelClosedError, RemotingProtocolError, RequestTimeoutError, RmqError
from rmqfast.logs import logger_of
from rmqfast.remoting import Header, Request, Response, ResponseCode

_log = logger_of(__name__)

#: Called once with the reply or the error.
OnReply: TypeAlias = Callable[[MessageView | RmqError], object]

CORRELATION_ID = "CORRELATION_ID"
_MAGIC = 0xDAA320A7
# the record's layout: see `reply_of`
_HEAD = struct.Struct(">IIIiiqqiq")
_MIDDLE = struct.Struct(">iqi")
_BORN_HOST_V6, _STORE_HOST_V6 = 0x10, 0x20
_ARRIVED = "ARRIVE_TIME"
_IS, _END = "\x01", "\x02"


class RequestFutures:
    """The requests of a client instance that wait for replies, by correlation id.

    Each request completes once: with its reply, a timeout, or the error of its send.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, OnReply] = {}
        self._own = Scheduler("rmqfast-replies")
        self._is_closed = self._is_told_later = False

    def __len__(self) -> int:
        return len(self._waiting)

    def open(self, on_reply: OnReply, *, timeout: float | None = None) -> str:
        """Adds a request and returns its correlation id. The request fails after `timeout` seconds."""
        correlation_id = str(uuid.uuid4())
        if timeout is None:
            self._waiting[correlation_id] = on_reply
        else:
            self._is_told_later = True
            self._waiting[correlation_id] = lambda ended: self._own.later(0.0, lambda: on_reply(ended))
            self._own.later(timeout, lambda: self._expire(correlation_id))
        # closed since the request was added: `close` may have missed it
        if self._is_closed:
            self.end(correlation_id, _closed())
        return correlation_id

    def end(self, correlation_id: str, ended: MessageView | RmqError) -> bool:
        """Completes a request. Returns whether it was still waiting."""
        # `pop` is atomic, so only one thread completes a request
        on_reply = self._waiting.pop(correlation_id, None)
        if on_reply is not None:
            on_reply(ended)
        return on_reply is not None

    def forget(self, correlation_id: str) -> bool:
        """Drops a request. Returns whether it was still waiting."""
        return self._waiting.pop(correlation_id, None) is not None

    def receive(self, request: Request) -> Response:
        """Processes a reply that a broker pushes. The broker gets a success even if no request waits for the reply."""
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
        """Fails all requests that wait, since their client is closed."""
        self._is_closed = True
        for correlation_id in list(self._waiting):
            self.end(correlation_id, _closed())
        if self._is_told_later:
            # after the queued callbacks
            self._own.later(0.0, lambda: self._own.stop(0))

    def _expire(self, correlation_id: str) -> None:
        self.end(correlation_id, RequestTimeoutError("request timeout, no reply message."))


def _closed() -> RmqError:
    return ChannelClosedError("the client was shut down while a reply was waited for")


def reply_of(ext_fields: Mapping[str, str], body: bytes, *, now: int) -> MessageView:
    """Returns a reply that a broker pushed, decoded, with its time of arrival as a property.

    A pushed reply consists of header and body. For the decoder it is first converted to a record:

    ```text
    4 total size   4 magic        4 body CRC     4 queue id      4 flag
    8 offset 0     8 place 0      4 sys flag     8 born time     8 or 20 born host   8 store time   8 or 20 store host
    4 reconsumed   8 prepared 0   4 + n body     1 + n topic     2 + n properties
    ```
    """
    header = Header(ext_fields)
    born, store = _Host.of(header.text("bornHost")), _Host.of(header.text("storeHost"))
    # the flags must match the hosts, or the record would be misread
    sys_flag = header.number("sysFlag") & ~(_BORN_HOST_V6 | _STORE_HOST_V6)
    sys_flag |= (born.is_v6 and _BORN_HOST_V6) | (store.is_v6 and _STORE_HOST_V6)
    text = header.optional_text("properties") or ""
    properties = f"{text}{'' if not text or text.endswith(_END) else _END}{_ARRIVED}{_IS}{now}".encode()
    topic = header.text("topic").encode()
    try:
        head = _HEAD.pack(
            0,
            _MAGIC,
            # RocketMQ's CRC has 31 bits
            zlib.crc32(body) & 0x7FFF_FFFF,
            header.number("queueId"),
            header.number("flag"),
            0,
            0,
            sys_flag,
            header.number("bornTimestamp"),
        )
        stored = struct.pack(">q", header.number("storeTimestamp"))
        middle = _MIDDLE.pack(header.number("reconsumeTimes", 0), 0, len(body))
        named = struct.pack(">B", len(topic)) + topic + struct.pack(">h", len(properties)) + properties
    except struct.error as error:
        raise RemotingProtocolError(f"a reply with a value out of range: {error}") from error
    rest = b"".join([head[4:], born.data, stored, store.data, middle, body, named])
    return decode_message(struct.pack(">I", len(rest) + 4) + rest, None)


class _Host(NamedTuple):
    """An IP address and a port, encoded as in a record of the commit log."""

    data: bytes
    is_v6: bool

    @classmethod
    def of(cls, text: str) -> _Host:
        """Parses an address: `ip:port`, or in Java's form `/ip:port` or `name/ip:port`."""
        host, _, port = text.rpartition("/")[2].rpartition(":")
        try:
            address = ip_address(host.strip("[]"))
            return cls(address.packed + struct.pack(">i", int(port)), isinstance(address, IPv6Address))
        except (ValueError, struct.error):
            raise RemotingProtocolError(f"a reply from {text[:80]!r}: expected an address and a port") from None
