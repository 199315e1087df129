"""Sends that somebody waits for: how one begins, and how it is driven to its end.

Source: `DefaultMQProducerImpl.sendDefaultImpl`, `sendKernelImpl`, `MQClientAPIImpl.sendMessage`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rmqfast._native import InFlight, MessageEncoder
from rmqfast.client.instance import ClientInstance
from rmqfast.client.instance.ids import unique_ids
from rmqfast.client.producer.callback_sends import CallbackSends
from rmqfast.client.producer.fault_strategy import FaultStrategy
from rmqfast.client.producer.hooks import CommunicationMode, HookedSends, Hooks, SendHook
from rmqfast.client.producer.message_batch import Batches
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.publish_queues import QueueSelector
from rmqfast.client.producer.publish_topics import PublishTopics
from rmqfast.client.producer.send import ONCE, RetryRules, Send, SendResult
from rmqfast.errors import ClientError, RemotingError, RmqError
from rmqfast.message import Message, MessageQueue
from rmqfast.store.frames import Frame
from rmqfast.system import monotonic


class Sender:
    """Sends for a producer that runs."""

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
        self._connections, self._topics, self._hooks = instance.connections, topics, hooks
        self._strategy = FaultStrategy() if options.leaves_slow_brokers else None
        self.encoder: Final = MessageEncoder(
            group,
            unique_ids(),
            default_topic=options.create_topic_key,
            default_topic_queue_nums=options.default_topic_queue_nums,
            compress_over=options.compress_over,
            instance_id=config.namespace or None,
            is_unit_mode=config.is_unit_mode,
        )
        self.batches: Final = Batches(self.encoder, topics, config.namespace, options)
        self._native = instance.connections.sender(self.encoder, in_flight)
        self._hooked = HookedSends(hooks, self.encoder, group, options.max_message_size)
        self._waited = RetryRules(options.retries, options.retry_response_codes, options.retry_another_broker)
        self.callbacks: Final = CallbackSends(
            self._native,
            instance.connections,
            topics,
            hooks=hooks,
            hooked=self._hooked,
            rules=RetryRules(options.async_retries, is_async=True),
            strategy=self._strategy,
            in_flight=in_flight,
        )

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
        # before the route is looked up: that is part of the timeout, too
        began = monotonic()
        queues = self._topics.queues_for(message)
        if queue is None and selector is None:
            return Send(message, (message,), queues, None, self._waited, self._strategy, began, timeout)
        queue = self._topics.chosen(message, queues, queue, selector, argument)
        return Send(message, (message,), queues, queue, ONCE, None, began, timeout)

    def begun_batch(
        self,
        messages: Sequence[Message] | Frame,
        queue: MessageQueue | None,
        timeout: float,
        topic: str | None = None,
    ) -> Send:
        """As `begun`, of several messages.

        Raises:
            ArgumentError: A row that cannot be sent.
            ClientError: As `begun`; or they cannot be sent together.
        """
        began = monotonic()
        made = self.batches.one(messages, topic)
        shown = messages if isinstance(messages, Sequence) else ()
        queues = self._topics.queues_of(made.topic)
        if queue is None:
            return Send(made, shown, queues, None, self._waited, self._strategy, began, timeout)
        queue = self._topics.own(queues, queue)
        return Send(made, shown, queues, queue, ONCE, None, began, timeout)

    def make(self, send: Send) -> None:
        """Makes the request of a send beforehand, as to compress a large body takes milliseconds."""
        send.message = self._hooked.made(send)

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
        address = self._topics.address_of(send.queues.topic, queue.broker_name)
        context, outgoing = self._hooked.before(send, queue, address, CommunicationMode.ONEWAY)
        try:
            self._connections.send_oneway(address, outgoing.code, outgoing.fields(queue.queue_id), outgoing.body)
        except RemotingError as error:
            self._hooked.after(context, error)
            raise
        self._hooked.after(context, None)

    def _attempt(self, send: Send, queue: MessageQueue, timeout: float) -> SendResult | RmqError:
        """One attempt that is waited for."""
        topic = send.queues.topic
        address = self._topics.address_of(topic, queue.broker_name)
        context, message = None, send.message
        if self._hooks.are_there:
            context, message = self._hooked.before(send, queue, address, CommunicationMode.SYNC)
        ended = self._native.send(message, topic, queue, address, timeout)
        if isinstance(ended, SendResult):
            self._hooked.after(context, ended)
            return ended
        made, error = ended
        # kept, so that all attempts have one id; where there are hooks, `before` has kept it
        if context is None:
            send.message = made
        self._hooked.after(context, error)
        return error
