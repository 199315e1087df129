"""Forwards an administrator's questions to a consumer: for its state, its offsets, or its result for a message.

Source: RocketMQ's `AdminBrokerProcessor`, `Broker2Client`, `MQVersion`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rmqfast._native import parse_message_id
from rmqfast.broker.clients.client_channel import ClientChannel
from rmqfast.broker.clients.consumer_manager import ConsumerManager
from rmqfast.errors import RemotingError, RemotingTimeoutError, ResponseError
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.remoting import Header, Later, Processor, Request, RequestCode, Response, ResponseCode
from rmqfast.remoting.fastjson import decode, encode
from rmqfast.remoting.rate_limit import limited
from rmqfast.remoting.version_names import version_name
from rmqfast.store import LiveStore

#: Seconds in which a client must answer a forwarded call, or the request for its offsets.
CALL_TIMEOUT = 10.0
STATUS_TIMEOUT = 5.0

#: Fields that prove who asks; never forwarded to a client.
_PROOF = frozenset({"AccessKey", "Signature", "SecurityToken"})
_EXCEPTIONS = "org.apache.rocketmq.remoting.exception"

#: Ordinals of releases: from the first on, clients can reset offsets; from the second on, report their state.
V3_0_7_SNAPSHOT = 28
V3_1_8_SNAPSHOT = 62

_log = limited(logger_of("rmqfast.broker"))


class ClientCallProcessor:
    def __init__(self, consumers: ConsumerManager, store: LiveStore, broker_name: str) -> None:
        self._consumers = consumers
        self._store = store
        self._broker_name = broker_name

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.GET_CONSUMER_RUNNING_INFO: self.running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self.consume_directly,
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: self.status,
        }

    def running_info(self, request: Request) -> Later:
        """Answers request 307 with the answer of the consumer itself."""
        header = Header(request.ext_fields)
        group, client_id = header.text("consumerGroup"), header.text("clientId")
        client = self._callable(group, client_id)
        return Later(lambda: _forward(client, group, request.code, request.ext_fields, request.body))

    def consume_directly(self, request: Request) -> Later:
        """Answers request 309: a consumer processes one message now and reports the result."""
        header = Header(request.ext_fields)
        group = header.text("consumerGroup")
        offset = _physical_offset(header.text("msgId"))
        record = self._store.record(offset)
        if record is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}")
        client = self._callable(group, header.optional_text("clientId"))
        # As in 4.9.4, the broker names itself, regardless of the request.
        fields = {**request.ext_fields, "brokerName": self._broker_name}
        return Later(lambda: _forward(client, group, request.code, fields, record))

    def status(self, request: Request) -> Later:
        """Answers request 223: the offsets that the consumers have in memory, for each client."""
        header = Header(request.ext_fields)
        topic, name = header.text("topic"), header.text("group")
        client_id = (header.optional_text("clientAddr") or "").strip()
        group = self._consumers.group(name)
        if group is None:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"No Any Consumer online in the consumer group: [{name}]")
        # As in `Broker2Client`, one client that is too old makes the whole request fail.
        for client in group.clients.values():
            check_version(client)
        clients = [client for client in group.clients.values() if not client_id or client.client_id == client_id]
        return Later(lambda: _status(clients[:1] if client_id else clients, {"topic": topic, "group": name}))

    def _callable(self, group: str, client_id: str | None) -> ClientChannel:
        client = None if client_id is None else self._consumers.client(group, client_id)
        if client is None:
            text = "null" if client_id is None else client_id
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{text}> not online")
        if client.version < V3_1_8_SNAPSHOT:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"The Consumer <{client_id}> Version <{version_name(client.version)}> too low to finish, "
                "please upgrade it to V3_1_8_SNAPSHOT",
            )
        return client


def check_version(client: ClientChannel) -> None:
    """Refuses a client whose version can neither reset nor report offsets."""
    if client.version < V3_0_7_SNAPSHOT:
        raise ResponseError(
            ResponseCode.SYSTEM_ERROR,
            f"the client does not support this feature. version={version_name(client.version)}",
        )


def _forward(client: ClientChannel, group: str, code: int, fields: Mapping[str, str], body: bytes) -> Response:
    """Forwards a request. Returns the client's answer, or an error response with the reason."""
    public_fields = {name: value for name, value in fields.items() if name not in _PROOF}
    consumer, address = f"<{group}> <{client.client_id}>", client.channel.remote_address
    try:
        answer = client.channel.request(code, public_fields, body, timeout=CALL_TIMEOUT)
    except RemotingTimeoutError:
        reason = f"wait response on the channel <{address}> timeout, {int(CALL_TIMEOUT * 1000)}(ms)"
        remark = f"consumer {consumer} Timeout: {_EXCEPTIONS}.RemotingTimeoutException: {reason}"
        return Response(ResponseCode.CONSUME_MSG_TIMEOUT, remark)
    except RemotingError:
        reason = f"{_EXCEPTIONS}.RemotingSendRequestException: send request to <{address}> failed"
        return Response(ResponseCode.SYSTEM_ERROR, f"invoke consumer {consumer} Exception: {reason}")
    return answer


def _status(clients: list[ClientChannel], fields: Mapping[str, str]) -> Response:
    tables = {}
    for client in clients:
        table = _offsets(client, fields)
        if table is not None:
            tables[client.client_id] = table
    return Response(body=encode({"consumerTable": tables, "messageQueueTable": {}}))


def _offsets(client: ClientChannel, fields: Mapping[str, str]) -> dict[MessageQueue, int] | None:
    """Asks a client for its offsets. Returns None if it does not report any."""
    code = RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
    try:
        answer = client.channel.request(code, fields, timeout=STATUS_TIMEOUT)
        members = decode(answer.body) if answer.code == ResponseCode.SUCCESS else None
    except RemotingError as error:
        _log.error("client %s of group %s tells no offsets: %s", client.client_id, fields["group"], error)
        return None
    return _queue_offsets(members)


def _queue_offsets(members: Any) -> dict[MessageQueue, int] | None:
    table = members.get("messageQueueTable") if isinstance(members, dict) else None
    if not isinstance(table, dict):
        return None
    return {queue: offset for queue, offset in table.items() if isinstance(queue, MessageQueue) and type(offset) is int}


def _physical_offset(message_id: str) -> int:
    place = parse_message_id(message_id)
    if place is None:
        remark = f"msgId: expected 32 or 56 hex digits, got {message_id[:80]!r}"
        raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)
    return place[2]
