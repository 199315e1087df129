"""Forwards a reply to the client that sent the request.

Source: RocketMQ's `ReplyMessageProcessor`, `BrokerConfig`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from rmqfast.broker.messages.appending import Append, status_of
from rmqfast.broker.messages.preparation import SendHeader
from rmqfast.broker.messages.stored_message import parse_properties, write_properties
from rmqfast.errors import RemotingError, RmqError
from rmqfast.logs import logger_of
from rmqfast.message import Message
from rmqfast.remoting import Channel, Later, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.rate_limit import limited
from rmqfast.store.config import TopicConfig

_log = limited(logger_of(__name__))

_SECONDS_FOR_THE_REQUESTER = 10.0
_REPLY_TO = "REPLY_TO_CLIENT"


@dataclass(frozen=True, slots=True)
class ReplyOptions:
    store_host: str
    region_id: str = "DefaultRegion"
    trace_on: bool = True
    store_replies: bool = True


class ReplyMessageProcessor:
    """Answers requests 324 and 325, which carry replies to clients."""

    def __init__(
        self,
        append: Append,
        *,
        find_channel: Callable[[str], Channel | None],
        check: Callable[[Request, SendHeader], TopicConfig],
        options: ReplyOptions,
        now: Callable[[], int],
    ) -> None:
        self._append = append
        self._find_channel = find_channel
        self._check = check
        self._options = options
        self._now = now

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.SEND_REPLY_MESSAGE: self.send_reply_message,
            RequestCode.SEND_REPLY_MESSAGE_V2: self.send_reply_message,
        }

    def send_reply_message(self, request: Request) -> Later:
        """Forwards a reply and waits for the answer of the client that gets it."""
        header = SendHeader.parse(request.ext_fields, is_short=request.code == RequestCode.SEND_REPLY_MESSAGE_V2)
        topic = self._check(request, header)
        queue_id = header.queue_id
        if queue_id < 0:
            queue_id = random.randrange(max(topic.write_queue_nums, 1))  # noqa: S311  # any queue will do
        return Later(lambda: self._hand_on(request, header, queue_id))

    def _hand_on(self, request: Request, header: SendHeader, queue_id: int) -> Response:
        remark = self._push(request, header)
        fields = {
            "MSG_REGION": self._options.region_id,
            "TRACE_ON": str(self._options.trace_on).lower(),
        }
        if remark is None:
            # Clients cannot decode an answer without these fields.
            fields |= {"msgId": "0", "queueId": str(queue_id), "queueOffset": "0"}
        if self._options.store_replies:
            fields |= self._store(request, header, queue_id)
        return Response(ResponseCode.SUCCESS if remark is None else ResponseCode.SYSTEM_ERROR, remark, fields)

    def _push(self, request: Request, header: SendHeader) -> str | None:
        """Sends the reply to the client that waits for it. Returns the reason of a failure, or None."""
        properties = parse_properties(header.properties)
        client = properties.get(_REPLY_TO)
        if client is None:
            return f"reply message properties[{_REPLY_TO}] is null"
        channel = self._find_channel(client)
        if channel is None:
            return f"push reply message fail, channel of <{client}> not found."
        properties["PUSH_REPLY_TIME"] = str(self._now())
        fields = replace(header, properties=write_properties(properties)).to_fields() | {
            "bornHost": _java_host(request.channel.remote_address),
            "storeHost": _java_host(self._options.store_host),
            "storeTimestamp": str(self._now()),
        }
        code = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
        try:
            answer = channel.request(code, fields, request.body, timeout=_SECONDS_FOR_THE_REQUESTER)
        except RemotingError as error:
            _log.warning("push reply message to <%s>: %s", client, error)
            # The missing blank is RocketMQ's; clients and scripts may search for this text.
            return f"push reply message to {client}fail."
        return None if answer.code == ResponseCode.SUCCESS else f"push reply message to {client}fail."

    def _store(self, request: Request, header: SendHeader, queue_id: int) -> dict[str, str]:
        """Stores the reply. Returns its location as header fields, or no fields if it is not stored."""
        message = Message(
            header.topic,
            request.body,
            properties=parse_properties(header.properties),
            queue_id=queue_id,
            flag=header.flag,
            born_timestamp=header.born_timestamp,
        )
        try:
            place = self._append(
                message, born_host=request.channel.remote_address, reconsume_times=header.reconsume_times or 0
            )
        except RmqError as error:
            _log.warning("a reply is not stored: %s: %s", status_of(error), error)
            return {}
        return {"msgId": place.offset_msg_id, "queueId": str(queue_id), "queueOffset": str(place.queue_offset)}


def _java_host(address: str) -> str:
    """Returns a host without the brackets around an IPv6 address."""
    return address.replace("[", "").replace("]", "")
