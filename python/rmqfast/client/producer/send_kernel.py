"""One request to one broker: the step between a producer's decisions and its connections.

Source: `DefaultMQProducerImpl.sendKernelImpl`, `MQClientAPIImpl.sendMessage`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rmqfast._native import MessageEncoder, Outgoing
from rmqfast.client.instance import ClientInstance
from rmqfast.client.instance.namespaces import unwrap
from rmqfast.client.producer.message_batch import check_batch_size
from rmqfast.client.producer.send_hook import CommunicationMode, SendContext, SendHooks
from rmqfast.client.producer.send_result import SendResult, result_of
from rmqfast.client.producer.timers import TIMERS
from rmqfast.client.trace import MessageType
from rmqfast.errors import ClientError, RemotingError, RemotingTimeoutError, RmqError
from rmqfast.message import Message, MessageQueue
from rmqfast.remoting import RequestCode, Response

_log = logging.getLogger(__name__)

_PREPARED = 4
_DELAYING = TIMERS | {"DELAY", "__STARTDELIVERTIME"}


class SendKernel:
    """Sends to the master of a queue's broker.

    Args:
        instance: Connections and addresses.
        group: The producer's group, for hooks.
        hooks: Who is told of each attempt.
        encoder: Makes requests of messages that hooks put in the place of others.
        most_bytes: That a batch may have.
        code: The request code of all that is sent, as of replies; that of the request unless given.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        hooks: SendHooks,
        encoder: MessageEncoder,
        most_bytes: int,
        *,
        code: int | None = None,
    ) -> None:
        self._instance, self._group, self._hooks, self._code = instance, group, hooks, code
        self._encoder, self._most_bytes = encoder, most_bytes
        self._connections = instance.connections
        self._namespace = instance.config.namespace
        # a signature needs the fields as texts, and so does what pull consumers' instances add
        self.is_signed = instance.config.signer(is_stream=instance.client_id.endswith("@STREAM")) is not None
        self.has_code = code is not None
        self._fields: Callable[[Outgoing, int], Mapping[str, str]]
        self._fields = Outgoing.fields if self.is_signed else Outgoing.to_queue

    def send(self, outgoing: Outgoing, queue: MessageQueue, timeout: float, messages: Sequence[Message]) -> SendResult:
        """Sends, and waits for the answer.

        Args:
            outgoing: The request.
            queue: Where it goes.
            timeout: In seconds.
            messages: What it is made of, for hooks.

        Raises:
            ResponseError: The broker refused the message.
            RemotingError: No answer: the message may be stored.
            ClientError: The broker is not known.
        """
        address = self.address_of(queue)
        context = None
        if self._hooks:
            context, outgoing = self.before(messages, outgoing, queue, address, CommunicationMode.SYNC)
        try:
            fields = self._fields(outgoing, queue.queue_id)
            answer = self._connections.request(
                address, self._code or outgoing.code, fields, outgoing.body, timeout=timeout
            )
            result = self.result_of(answer, queue, outgoing, address)
        except RemotingError as error:
            self.after(context, error)
            raise
        self.after(context, result)
        return result

    def send_oneway(self, outgoing: Outgoing, queue: MessageQueue, messages: Sequence[Message]) -> None:
        """Sends a message whose end nobody will know.

        Raises:
            RemotingError: The broker cannot be reached.
            ClientError: The broker is not known.
        """
        address = self.address_of(queue)
        context = None
        if self._hooks:
            context, outgoing = self.before(messages, outgoing, queue, address, CommunicationMode.ONEWAY)
        fields = self._fields(outgoing, queue.queue_id)
        try:
            self._connections.send_oneway(address, self._code or outgoing.code, fields, outgoing.body)
        except RemotingError as error:
            self.after(context, error)
            raise
        self.after(context, None)

    def submit(
        self,
        outgoing: Outgoing,
        queue_id: int,
        address: str,
        on_done: Callable[[Response | RemotingError], None],
        timeout: float,
        *,
        waits: bool = True,
    ) -> None:
        """Sends, and has `on_done` called with the answer or the error, exactly once.

        Args:
            outgoing: The request.
            queue_id: Where it goes.
            address: Who gets it.
            on_done: Takes how it ended.
            timeout: In seconds.
            waits: Whether it may wait for room among what is to be written.

        Raises:
            RemotingError: It was not sent; `on_done` is not called.
        """
        if timeout <= 0:
            raise RemotingTimeoutError("invokeAsync call timeout")
        fields = self._fields(outgoing, queue_id)
        code = self._code or outgoing.code
        self._connections.submit(address, code, fields, outgoing.body, on_done, timeout=timeout, waits=waits)

    def result_of(self, answer: Response, queue: MessageQueue, outgoing: Outgoing, address: str) -> SendResult:
        """What an answer says, without the namespace.

        Raises:
            ResponseError: The message is not stored.
        """
        if self._namespace:
            topic = unwrap(self._namespace, queue.topic)
            queue = MessageQueue(topic, queue.broker_name, queue.queue_id)
        return result_of(answer, queue, outgoing.unique_id, address)

    def address_of(self, queue: MessageQueue) -> str:
        """The master of a queue's broker; asks for the route once more where none is known.

        Raises:
            ClientError: There is none.
        """
        address = self._instance.publish_address(queue.broker_name)
        if address is None:
            self._instance.update_route(queue.topic)
            address = self._instance.publish_address(queue.broker_name)
        if address is None:
            raise ClientError(
                f"The broker[{queue.broker_name}] not exist",
                next_step="it has no master in the routes: see that its master is connected to this name server",
            )
        return address

    def before(
        self,
        messages: Sequence[Message],
        outgoing: Outgoing,
        queue: MessageQueue,
        address: str,
        mode: CommunicationMode,
    ) -> tuple[SendContext, Outgoing]:
        """Tells the hooks that a message is about to be sent; what is sent then."""
        kind = _message_type(messages, outgoing)
        context = SendContext(self._group, messages, queue, address, mode, kind, outgoing.unique_id, len(outgoing))
        self._hooks.before(context)
        if context.messages is not messages:
            outgoing = self._encoded(context.messages, outgoing)
        return context, outgoing

    def after(self, context: SendContext | None, ended: SendResult | Exception | None) -> None:
        """Tells the hooks how it ended; nothing where they were told nothing before."""
        if context is None:
            return
        if isinstance(ended, Exception):
            context.error = ended
        else:
            context.result = ended
        self._hooks.after(context)

    def _encoded(self, messages: Sequence[Message], outgoing: Outgoing) -> Outgoing:
        """The request of what hooks put in a message's place, with the same ids; as it was, where that cannot be."""
        ids = outgoing.unique_id.split(",")
        try:
            kept = [_with_id(message, unique_id) for message, unique_id in zip(messages, ids, strict=True)]
            if outgoing.code == RequestCode.SEND_BATCH_MESSAGE:
                made = self._encoder.encode_batch(kept, outgoing.topic, kept[0].wait_store)
                check_batch_size(len(made), self._most_bytes)
                return made
            flag = outgoing.sys_flag & _PREPARED
            added = transaction_properties(self._group) if flag else []
            return self._encoder.encode(kept[0], outgoing.topic, added, flag)
        except (RmqError, ValueError, TypeError):
            _log.warning("what hooks made of message %s cannot be sent, it is sent as it was", ids[0], exc_info=True)
            return outgoing


def transaction_properties(group: str) -> list[tuple[str, str]]:
    """What a half message has more."""
    return [("TRAN_MSG", "true"), ("PGROUP", group)]


def _with_id(message: Message, unique_id: str) -> Message:
    return replace(message, properties={**message.properties, "UNIQ_KEY": unique_id})


def _message_type(messages: Sequence[Message], outgoing: Outgoing) -> MessageType:
    if outgoing.sys_flag & _PREPARED:
        return MessageType.TRANSACTION_HALF
    is_delayed = any(message.delay_level or not _DELAYING.isdisjoint(message.properties) for message in messages)
    return MessageType.DELAY if is_delayed else MessageType.NORMAL
