"""Answers the requests that brokers send to a client.

Source: RocketMQ's `UtilAll`, `ClientRemotingProcessor`, `MQClientInstance`, `MessageDecoder`, `MQClientAPIImpl`.
"""

from __future__ import annotations

import gc
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from rmqfast._native import MessageView, decode_pull
from rmqfast.client.instance.members import ConsumerInner, Members
from rmqfast.errors import RemotingProtocolError, ResponseError
from rmqfast.logs import logger_of
from rmqfast.remoting import Header, Processor, Request, RequestCode, Response, ResponseCode, fastjson
from rmqfast.remoting.protocol.json_object import JsonObject
from rmqfast.threads import new_lock, new_thread


def thread_frames() -> dict[int, FrameType]:
    """Returns the current frame of each thread, by thread id."""
    was_enabled = gc.isenabled()
    # The call allocates objects while it holds the lock of all thread states. Before Python 3.11.9 this may start a
    # garbage collection, which may switch to a thread that waits for the same lock: a deadlock of the whole process.
    # https://github.com/python/cpython/issues/106883
    gc.disable()
    try:
        return sys._current_frames()  # noqa: SLF001 - there is no other way
    finally:
        if was_enabled:
            gc.enable()


_log = logger_of(__name__)

_MOST_QUEUES = 1_000_000
_VERSION_NAME = "V4_9_4"
_PRODUCER_GROUP = "PGROUP"


class BrokerRequests:
    """Answers requests of brokers. They arrive over the connection that carries the heartbeats."""

    def __init__(
        self,
        members: Members,
        rebalance: Callable[[], None],
        decode: Callable[[bytes, str | None], Any],
        name_servers: tuple[str, ...] = (),
    ) -> None:
        self._members, self._rebalance, self._decode, self._name_servers = members, rebalance, decode, name_servers
        self._resetting: set[tuple[str, str]] = set()
        self._lock = new_lock()

    def processors(self) -> dict[int, Processor]:
        return {
            RequestCode.CHECK_TRANSACTION_STATE: self.check_transaction_state,
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self.consumer_ids_changed,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self.reset_offset,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self.consumer_status,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self.running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self.consume_directly,
        }

    def consumer_ids_changed(self, request: Request) -> None:
        """Rebalances all groups of this client, since consumers have joined or left."""
        group = request.ext_fields.get("consumerGroup")
        _log.info("broker %s says that members of group %s came or left", request.channel.remote_address, group)
        self._rebalance()

    def check_transaction_state(self, request: Request) -> None:
        """Asks the producer of a transaction how it ended."""
        message = self._decode(request.body, None)
        group = message.properties.get(_PRODUCER_GROUP)
        producer = None if group is None else self._members.producers().get(group)
        if producer is None:
            _log.warning("a transaction of group %s is to be checked, which has no producer here", group)
            return
        producer.check_transaction_state(request.channel.remote_address, message, request.ext_fields)

    def reset_offset(self, request: Request) -> None:
        """Resets a consumer to the offsets in the request. Runs on a thread of its own, since it takes ten seconds."""
        header = Header(request.ext_fields)
        topic, group = header.text("topic"), header.text("group")
        offsets = JsonObject.of_body(request.body).numbers_by_queue("offsetTable", most=_MOST_QUEUES)
        consumer = self._members.consumers().get(group)
        if consumer is None:
            _log.warning("offsets of group %s are to be reset, which has no consumer here", group)
            return
        with self._lock:
            is_reset_already = (group, topic) in self._resetting
            self._resetting.add((group, topic))
        if is_reset_already:
            _log.warning("offsets of group %s and topic %s are being reset: asked for once more", group, topic)
            return

        def reset() -> None:
            try:
                consumer.reset_offset(topic, offsets)
            except Exception:  # noqa: BLE001 - nothing else catches errors of this thread
                _log.exception("offsets of group %s and topic %s could not be reset", group, topic)
            finally:
                with self._lock:
                    self._resetting.discard((group, topic))

        new_thread(reset, name="rmqfast-reset-offset").start()

    def consumer_status(self, request: Request) -> Response:
        """Returns the offsets that a consumer has in memory. Empty if the consumer does not exist."""
        header = Header(request.ext_fields)
        consumer = self._members.consumers().get(header.text("group"))
        offsets = {} if consumer is None else dict(consumer.consumer_status(header.text("topic")))
        return Response(body=fastjson.encode({"consumerTable": {}, "messageQueueTable": offsets}))

    def running_info(self, request: Request) -> Response:
        """Returns the state of a consumer. If requested, it contains the stacks of all threads."""
        header = Header(request.ext_fields)
        consumer = self._consumer(header)
        info = dict(consumer.running_info())
        info["properties"] = {
            **info.get("properties", {}),
            "PROP_NAMESERVER_ADDR": "".join(f"{address};" for address in self._name_servers),
            "PROP_CONSUME_TYPE": consumer.consume_type,
            "PROP_CLIENT_VERSION": _VERSION_NAME,
        }
        if header.flag("jstackEnable"):
            info["jstack"] = stacks()
        return Response(body=fastjson.encode(info))

    def consume_directly(self, request: Request) -> Response:
        """Passes one message to a consumer's listener now, and returns the result."""
        header = Header(request.ext_fields)
        consumer, broker_name = self._consumer(header), header.optional_text("brokerName")
        result = consumer.consume_message_directly(self._decode(request.body, broker_name), broker_name)
        return Response(body=fastjson.encode(result))

    def _consumer(self, header: Header) -> ConsumerInner:
        group = header.text("consumerGroup")
        consumer = self._members.consumers().get(group)
        if consumer is None:
            remark = f"The Consumer Group <{group}> not exist in this consumer"
            raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)
        return consumer


def stacks() -> str:
    """Returns the stacks of all threads of this process as a string."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = [
        f"{names.get(ident, '?')} TID: {ident}\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in thread_frames().items()
    ]
    return "\n".join(parts)


def decode_messages(records: bytes, broker_name: str | None) -> list[MessageView]:
    """Returns the messages of an answer whose body is a sequence of commit-log records."""
    return decode_pull(records, broker_name=broker_name)


def decode_message(record: bytes, broker_name: str | None) -> MessageView:
    messages = decode_messages(record, broker_name)
    if len(messages) != 1:
        raise RemotingProtocolError(f"expected a record of one message, got {len(messages)} in {len(record)} bytes")
    return messages[0]


def decode_viewed(record: bytes, physical_offset: int, broker_name: str | None) -> MessageView:
    """Returns the message that answers a query by physical offset. Raises an error if its offset differs."""
    message = decode_message(record, broker_name)
    if message.physical_offset != physical_offset:
        raise RemotingProtocolError(
            f"answer to a look-up: expected the message at offset {physical_offset} of the log, "
            f"got the one at {message.physical_offset}"
        )
    return message
