"""Sends: each attempt at a broker, and the loops that drive a send to its end, for whoever waits or is called back.

Source: `DefaultMQProducerImpl.sendKernelImpl`, `MQClientAPIImpl.sendMessage`, `sendMessageAsync`, `onExceptionImpl`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any, TypeAlias

from rmqfast._native import InFlight, MessageEncoder, Outgoing
from rmqfast.client.instance import ClientInstance
from rmqfast.client.instance.unique_ids import unique_ids
from rmqfast.client.producer.fault_strategy import FaultStrategy
from rmqfast.client.producer.hooks import CommunicationMode, Hooks, SendContext, SendHook
from rmqfast.client.producer.message_batch import Batches, check_batch_size
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.publish_queues import PublishQueues, QueueSelector
from rmqfast.client.producer.publish_topics import TIMERS, PublishTopics
from rmqfast.client.producer.send import ONCE, RetryRules, Send, SendCallback, SendResult
from rmqfast.client.trace import MessageType
from rmqfast.errors import ClientError, RemotingError, RmqError, TooManyRequestsError
from rmqfast.message import Message, MessageQueue
from rmqfast.remoting import RequestCode
from rmqfast.store.writer import ArrowBatch, ArrowStream

_log = logging.getLogger(__name__)

_PREPARED = 4
_DELAYING = TIMERS | {"DELAY", "__STARTDELIVERTIME"}
#: What a broker counts as that an asynchronous send could not be sent to, in milliseconds.
_NOT_SENT_LATENCY = 3000


#: Whether a thread waits for room; by position, as a call by name costs more.
_WAITS, _NEVER = True, False

#: An asynchronous send on its way: its callback, what hooks were told before, and what `Send` is made of besides its
#: message. As a rule it ends well, and nobody makes one.
_OnWay: TypeAlias = tuple[
    SendCallback,
    SendContext | None,
    Sequence[Message],
    PublishQueues,
    MessageQueue,
    RetryRules,
    FaultStrategy | None,
    float,
    float,
]


class Sender:
    """Sends for a producer that runs.

    Args:
        instance: Connections and addresses.
        group: The producer's group.
        options: How to send.
        topics: Check messages and know queues.
        hooks: Who is told of each attempt.
        in_flight: How much may be on its way.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        options: ProducerOptions,
        *,
        topics: PublishTopics,
        hooks: Hooks[SendHook],
        in_flight: InFlight,
    ) -> None:
        config = instance.config
        self._instance, self._group, self._options = instance, group, options
        self._topics, self._hooks, self._in_flight = topics, hooks, in_flight
        self._strategy = FaultStrategy() if options.leaves_slow_brokers else None
        self._connections, self._routes = instance.connections, instance.routes
        self.encoder = MessageEncoder(
            group,
            unique_ids(),
            default_topic=options.create_topic_key,
            default_topic_queue_nums=options.default_topic_queue_nums,
            compress_over=options.compress_over,
            instance_id=config.namespace or None,
            is_unit_mode=config.is_unit_mode,
        )
        self.batches = Batches(self.encoder, topics, config.namespace, options)
        self._native = self._connections.sender(self.encoder, in_flight)
        self._waited = RetryRules(options.retries, options.retry_response_codes, options.retry_another_broker)
        self._called_back = RetryRules(options.async_retries, is_async=True)
        self._called_back_there = RetryRules(options.async_retries, moves=False, is_async=True)

    def begun(
        self,
        message: Message,
        queue: MessageQueue | None,
        timeout: float,
        selector: QueueSelector | None,
        argument: Any,
    ) -> Send:
        """A send that somebody waits for.

        Args:
            message: What is sent.
            queue: Where the application wants it to go: then there is one attempt.
            timeout: For all attempts together, in seconds.
            selector: Chooses the queue.
            argument: What it goes by.

        Raises:
            ArgumentError: Both a queue and a selector.
            ClientError: The message is not such as brokers take, or nobody has the topic.
        """
        began = monotonic()
        queues = self._topics.queues_for(message)
        if queue is None and selector is None:
            return Send(message, (message,), queues, None, self._waited, self._strategy, began, timeout)
        queue = self._topics.chosen(message, queues, queue, selector, argument)
        return Send(message, (message,), queues, queue, ONCE, None, began, timeout)

    def begun_batch(
        self,
        messages: Outgoing | Sequence[Message] | ArrowStream | ArrowBatch,
        queue: MessageQueue | None,
        timeout: float,
        topic: str | None = None,
    ) -> Send:
        """As `begun`, of several messages.

        Args:
            messages: Messages, rows, or what was made of them.
            queue: As of `begun`.
            timeout: As of `begun`.
            topic: Of rows without a column `topic`.

        Raises:
            ArgumentError: A row that cannot be sent.
            ClientError: As `begun`; or they cannot be sent together.
        """
        began = monotonic()
        made = messages if isinstance(messages, Outgoing) else self.batches.one(messages, topic)
        shown = messages if isinstance(messages, Sequence) else ()
        queues = self._topics.queues_of(made.topic)
        if queue is None:
            return Send(made, shown, queues, None, self._waited, self._strategy, began, timeout)
        queue = self._topics.own(queues, queue)
        return Send(made, shown, queues, queue, ONCE, None, began, timeout)

    def wait(self, send: Send) -> SendResult:
        """Makes attempts until it has ended.

        Raises:
            ClientError: All attempts failed.
            ResponseError: The broker refused the message, and none else was asked.
            RemotingError: The only attempt failed, or the time is over.
        """
        while True:
            queue, left = send.begin(monotonic())
            end: SendResult | RmqError
            try:
                end = self._attempt(send, queue, left)
            except (RemotingError, ClientError) as error:
                end = error
            now = monotonic()
            if not send.ended(end, now):
                return send.result(now)

    def send_oneway(self, send: Send) -> None:
        """Makes one attempt, whose end nobody will know.

        Raises:
            RemotingError: The broker cannot be reached.
            ClientError: The broker is not known.
        """
        queue, _ = send.begin(monotonic())
        address = self.address_of(send.queues.topic, queue.broker_name)
        context, outgoing = self._before(send, queue, address, CommunicationMode.ONEWAY)
        try:
            self._connections.send_oneway(address, outgoing.code, outgoing.fields(queue.queue_id), outgoing.body)
        except RemotingError as error:
            self._after(context, error)
            raise
        self._after(context, None)

    def submit(  # noqa: PLR0917 - a call by name costs more on this way
        self,
        message: Message | Outgoing,
        messages: Sequence[Message],
        queues: PublishQueues,
        queue: MessageQueue | None,
        callback: SendCallback,
        timeout: float,
    ) -> None:
        """Sends, and has `callback` called with the end, exactly once.

        Args:
            message: What is sent.
            messages: What hooks are shown.
            queues: The queues of the topic.
            queue: The one that the application chose.
            callback: Takes the end.
            timeout: For waiting for room, and for all attempts, in seconds.

        Raises:
            RemotingTimeoutError: Too much is on its way, and was until the time was over: there will be no call.
            ClientError: The broker is not known; there will be no call.
        """
        began, rules = monotonic(), self._called_back if queue is None else self._called_back_there
        strategy = self._strategy
        if queue is None:
            queue = queues.select() if strategy is None else strategy.select(queues)
        address = self._routes.publish_address(queue.broker_name) or self.address_of(queues.topic, queue.broker_name)
        context, stored = None, callback
        if self._hooks.are_there or strategy is not None:
            send = Send(message, messages, queues, queue, rules, strategy, began, timeout)
            send.begin(began)
            context, message = self._before(send, queue, address, CommunicationMode.ASYNC)
            stored = partial(self._stored, send, context, callback)
        on_way = (callback, context, messages, queues, queue, rules, strategy, began, timeout)
        try:
            made = self._native.submit(
                message, queues.topic, queue, address, timeout, stored, self._resume, on_way, _WAITS
            )
            if made is None:
                return
            self._in_flight.take(len(made), began + timeout - monotonic())
        except RemotingError as error:
            self._after(context, error)
            raise
        send = Send(made, messages, queues, queue, rules, strategy, began, timeout)
        _, left = send.begin(monotonic())
        self._try(send, on_way, queue, left, address)

    def begin(self, send: Send, queue: MessageQueue, timeout: float, on_end: SendCallback, *, waits: bool) -> bool:
        """Makes one attempt for whoever must not wait; `on_end` is called once with its end, on any thread.

        Args:
            send: What is sent.
            queue: Where it goes.
            timeout: In seconds.
            on_end: Takes the end.
            waits: Whether this may wait, for a connection or for room.

        Returns:
            Whether it was sent; not where that would have to wait.

        Raises:
            ClientError: The broker is not known.
            RemotingError: It was not sent.
        """
        topic = send.queues.topic
        address = self._routes.publish_address(queue.broker_name)
        if address is None:
            if not waits:
                return False
            address = self.address_of(topic, queue.broker_name)
        if not waits and not self._hooks.are_there:
            made = self._native.submit(
                send.message, topic, queue, address, timeout, on_end, self._begun_failed, (send, on_end), _NEVER
            )
            send.message = made or send.message
            return made is None
        made = send.message = self.made(send)
        size = len(made)
        if waits:
            self._in_flight.take(size, timeout)
        elif not self._connections.is_open(address) or not self._in_flight.try_take(size):
            return False
        context, outgoing = self._before(send, queue, address, CommunicationMode.ASYNC)

        def ended(end: SendResult | RmqError) -> None:
            self._in_flight.give_back(size)
            self._after(context, end)
            on_end(end)

        try:
            may_wait = self._connections.may_wait() and waits
            self._native.resubmit(outgoing, queue, address, timeout, ended, may_wait)
        except BaseException as error:
            self._in_flight.give_back(size)
            self._after(context, error if isinstance(error, RemotingError) else None)
            if isinstance(error, TooManyRequestsError) and not waits:
                return False
            raise
        return True

    def address_of(self, topic: str, broker_name: str) -> str:
        """The master of a broker; asks for the route of the topic once more where none is known.

        Raises:
            ClientError: There is none.
        """
        address = self._routes.publish_address(broker_name)
        if address is None:
            self._instance.update_route(topic)
            address = self._routes.publish_address(broker_name)
        if address is None:
            raise ClientError(
                f"The broker[{broker_name}] not exist",
                next_step="it has no master in the routes: see that its master is connected to this name server",
            )
        return address

    def _attempt(self, send: Send, queue: MessageQueue, timeout: float) -> SendResult | RmqError:
        """One attempt that is waited for."""
        topic, name = send.queues.topic, queue.broker_name
        address = self._routes.publish_address(name) or self.address_of(topic, name)
        context, message = None, send.message
        if self._hooks.are_there:
            context, message = self._before(send, queue, address, CommunicationMode.SYNC)
        ended = self._native.send(message, topic, queue, address, timeout)
        if isinstance(ended, SendResult):
            self._after(context, ended)
            return ended
        made, error = ended
        if context is None:
            send.message = made
        self._after(context, error)
        return error

    def _stored(self, send: Send, context: SendContext | None, callback: SendCallback, end: SendResult) -> None:
        """The usual end of an asynchronous send that somebody besides the callback is told of."""
        send.ended(end, monotonic())
        self._after(context, end)
        callback(end)

    def _resume(self, on_way: _OnWay, made: Outgoing, _queue: MessageQueue) -> SendCallback:
        """Takes the error that the first attempt of an asynchronous send ended with."""
        _, _, messages, queues, queue, rules, strategy, began, timeout = on_way
        send = Send(made, messages, queues, queue, rules, strategy, began, timeout)
        send.begin(began)
        return partial(self._attempted, send, on_way)

    def _try(self, send: Send, on_way: _OnWay, queue: MessageQueue, left: float, address: str) -> None:
        """One more attempt of an asynchronous send."""
        attempted = partial(self._attempted, send, on_way)
        try:
            self._native.resubmit(self.made(send), queue, address, left, attempted, self._connections.may_wait())
        except RemotingError as error:
            self._attempted(send, on_way, error, latency=_NOT_SENT_LATENCY)
        except RmqError as error:  # as in a fork
            self._attempted(send, on_way, error)

    def _attempted(self, send: Send, on_way: _OnWay, end: SendResult | RmqError, latency: int | None = None) -> None:
        """An attempt of an asynchronous send has ended."""
        if send.ended(end, monotonic(), latency):
            queue, left = send.begin(monotonic())
            address = self._routes.publish_address(queue.broker_name)
            if address is not None:
                self._try(send, on_way, queue, left, address)
                return
        callback, context = on_way[0], on_way[1]
        end = send.end(monotonic())
        self._in_flight.give_back(len(self.made(send)))
        self._after(context, end)
        callback(end)

    def _begun_failed(self, begun: tuple[Send, SendCallback], made: Outgoing, _queue: MessageQueue) -> SendCallback:
        """Takes the error that an attempt of `begin` ended with."""
        send, on_end = begun
        send.message = made
        self._in_flight.give_back(len(made))
        return on_end

    def made(self, send: Send) -> Outgoing:
        """What is sent, made of its message unless it is made already."""
        message = send.message
        return message if isinstance(message, Outgoing) else self.encoder.encode(message, send.queues.topic)

    def _before(
        self, send: Send, queue: MessageQueue, address: str, mode: CommunicationMode
    ) -> tuple[SendContext | None, Outgoing]:
        """Tells the hooks that a message is about to be sent; what is sent then."""
        made = send.message = self.made(send)
        if not self._hooks.are_there:
            return None, made
        if queue.topic != made.topic:
            queue = MessageQueue(made.topic, queue.broker_name, queue.queue_id)
        messages, kind = send.messages, _message_type(send.messages, made)
        context = SendContext(self._group, messages, queue, address, mode, kind, made.unique_id, len(made))
        self._hooks.tell(lambda hook: hook.before(context))
        return context, made if context.messages is messages else self._replaced(context.messages, made)

    def _after(self, context: SendContext | None, end: SendResult | RmqError | None) -> None:
        """Tells the hooks how it ended; nothing where they were told nothing before."""
        if context is None:
            return
        if isinstance(end, SendResult):
            context.result = end
        else:
            context.error = end
        self._hooks.tell(lambda hook: hook.after(context))

    def _replaced(self, messages: Sequence[Message], made: Outgoing) -> Outgoing:
        """The request of what hooks put in a message's place, with the same ids; as it was, where that cannot be."""
        ids = made.unique_id.split(",")
        try:
            kept = [_with_id(message, unique_id) for message, unique_id in zip(messages, ids, strict=True)]
            if made.code == RequestCode.SEND_BATCH_MESSAGE:
                batch = self.encoder.encode_batch(kept, made.topic, kept[0].wait_store)
                check_batch_size(len(batch), self._options.max_message_size)
                return batch
            flag = made.sys_flag & _PREPARED
            return self.encoder.encode(kept[0], made.topic, transaction_properties(self._group) if flag else [], flag)
        except (RmqError, ValueError, TypeError):
            _log.warning("what hooks made of message %s cannot be sent, it is sent as it was", ids[0], exc_info=True)
            return made


def transaction_properties(group: str) -> list[tuple[str, str]]:
    """What a half message has more."""
    return [("TRAN_MSG", "true"), ("PGROUP", group)]


def _with_id(message: Message, unique_id: str) -> Message:
    return replace(message, properties={**message.properties, "UNIQ_KEY": unique_id})


def _message_type(messages: Sequence[Message], made: Outgoing) -> MessageType:
    if made.sys_flag & _PREPARED:
        return MessageType.TRANSACTION_HALF
    is_delayed = any(message.delay_level or not _DELAYING.isdisjoint(message.properties) for message in messages)
    return MessageType.DELAY if is_delayed else MessageType.NORMAL
