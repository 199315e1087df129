"""The steps of a send: a message is checked and has queues, one of them is chosen, a request is made and goes out.

Source: `DefaultMQProducerImpl.sendDefaultImpl`, `sendSelectImpl`, `MQClientAPIImpl.sendMessage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rmqfast._native import Outgoing
from rmqfast.client.instance import ServiceState
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.instance.validators import check_message
from rmqfast.client.producer.async_send import SendCallback
from rmqfast.client.producer.message_batch import (
    check_batch,
    check_batch_size,
    check_sendable_topic,
    parts_of,
)
from rmqfast.client.producer.producer_impl import ProducerImpl
from rmqfast.client.producer.publish_queues import PublishQueues
from rmqfast.client.producer.queue_selector import QueueSelector
from rmqfast.client.producer.reply_message import is_reply
from rmqfast.client.producer.requests import Added, Send
from rmqfast.client.producer.send_attempts import send_with_retries
from rmqfast.client.producer.send_hook import CommunicationMode
from rmqfast.client.producer.send_kernel import SendKernel
from rmqfast.client.producer.send_result import SendResult
from rmqfast.client.producer.timers import check_timers, is_timed
from rmqfast.errors import ArgumentError, ClientError, RemotingError
from rmqfast.message import Message, MessageQueue
from rmqfast.store.writer import ArrowBatch, ArrowStream


class Sending(ProducerImpl):
    """The part of a producer that sends what it is told."""

    def _prepare(self, message: Message) -> PublishQueues:
        """Checks a message, and finds the queues of its topic."""
        if self._state is not ServiceState.RUNNING:
            self._check_running()
        topic, body = message.topic, message.body
        if not body or topic not in self._checked or len(body) > self.options.max_message_size:
            self._check(message)
        if self._namespace:
            topic = wrap(self._namespace, topic)
        queues = self._queues_of(topic)
        if message.properties and is_timed(message):
            check_timers(queues, self._instance.routes)
        return queues

    def _check(self, message: Message) -> None:
        body = message.body
        if message.topic in self._checked and body and len(body) <= self.options.max_message_size:
            return
        check_message(message, max_message_size=self.options.max_message_size)
        self._checked.add(message.topic)

    def _send_anywhere(
        self,
        outgoing: Outgoing,
        queues: PublishQueues,
        timeout: float,
        messages: Sequence[Message],
        kernel: SendKernel | None = None,
    ) -> SendResult:
        send = (kernel or self._kernel).send
        return send_with_retries(
            lambda queue, left: send(outgoing, queue, left, messages), queues, self.strategy, self.options, timeout
        )

    def _send_request(
        self, message: Message, queue: MessageQueue | None, selector: QueueSelector | None, argument: Any
    ) -> Send:
        """What sends a request, with the properties that say who asks."""
        queues = self._prepare(message)
        is_chosen = queue is not None or selector is not None
        chosen = self._chosen(message, queues, queue, selector, argument) if is_chosen else self.strategy.select(queues)
        others = None if is_chosen else queues

        def send(added: Added, callback: SendCallback, timeout: float) -> None:
            outgoing = self._encoder.encode(message, queues.info.topic, added)
            shown = replace(message, properties={**message.properties, **dict(added)})
            self._submit(outgoing, chosen, others, callback, timeout, (shown,))

        return send

    def _chosen(
        self,
        message: Message,
        queues: PublishQueues,
        queue: MessageQueue | None,
        selector: QueueSelector | None,
        argument: Any,
    ) -> MessageQueue:
        """The queue that the application wants, with its namespace."""
        if selector is not None:
            if queue is not None:
                raise ArgumentError("expected a queue or a selector, got both")
            queue = selector([self._shown(each) for each in queues.queues], message, argument)
            if queue is None:
                raise ClientError("select message queue return null.")
        if queue is None:
            raise ClientError("send message queue is null.")
        namespace = self._namespace
        if queue.topic == message.topic and not namespace:
            return queue
        if unwrap(namespace, queue.topic) != unwrap(namespace, message.topic):
            raise ClientError("message's topic not equal mq's topic")
        return MessageQueue(queues.topic, queue.broker_name, queue.queue_id) if namespace else queue

    def _shown(self, queue: MessageQueue) -> MessageQueue:
        """A queue as the application knows it."""
        namespace = self._config.namespace
        if not namespace:
            return queue
        return MessageQueue(unwrap(namespace, queue.topic), queue.broker_name, queue.queue_id)

    def _submit(  # noqa: PLR0917 - a call by name costs more on this way
        self,
        outgoing: Outgoing,
        queue: MessageQueue,
        others: PublishQueues | None,
        callback: SendCallback,
        timeout: float,
        messages: Sequence[Message],
    ) -> None:
        asyncs = self._reply_asyncs if messages and is_reply(messages[0]) else self._asyncs
        kernel = asyncs.kernel
        address = self._instance.routes.publish_address(queue.broker_name) or kernel.address_of(queue)
        context = None
        if self.hooks.are_there:
            context, outgoing = kernel.before(messages, outgoing, queue, address, CommunicationMode.ASYNC)
        try:
            asyncs.start(outgoing, queue, others, callback, timeout, context, address)
        except RemotingError as error:
            kernel.after(context, error)
            raise

    def _batches(
        self, messages: Sequence[Message] | ArrowStream | ArrowBatch, topic: str | None, batch_size: int
    ) -> list[tuple[Outgoing, Sequence[Message]]]:
        if not isinstance(messages, Sequence):
            return [(rows, ()) for rows in self._row_batches(messages, topic, batch_size)]
        check_batch(messages)
        for message in messages:
            self._check(message)
        wrapped, wait_store = wrap(self._config.namespace, messages[0].topic), messages[0].wait_store
        parts = parts_of(messages, self.options.max_message_size, batch_size)
        return [(self._encoder.encode_batch(part, wrapped, wait_store), part) for part in parts]

    def _batch(self, messages: Sequence[Message]) -> Outgoing:
        """All messages as one batch."""
        check_batch(messages)
        for message in messages:
            self._check(message)
        wrapped = wrap(self._config.namespace, messages[0].topic)
        outgoing = self._encoder.encode_batch(list(messages), wrapped, messages[0].wait_store)
        check_batch_size(len(outgoing), self.options.max_message_size)
        return outgoing

    def _row_batches(self, rows: ArrowStream | ArrowBatch, topic: str | None, batch_size: int) -> list[Outgoing]:
        """All rows, in batches of one topic and of so many messages each, or as many as one may have bytes."""
        namespace, most = self._config.namespace, self.options.max_message_size

        def checked(name: str) -> str:
            check_sendable_topic(name)
            return wrap(namespace, name)

        return self._encoder.encode_rows(rows, topic, checked, most_bytes=most, most_count=batch_size)
