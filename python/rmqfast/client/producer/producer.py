"""The producer.

Source: `DefaultMQProducer`, `DefaultMQProducerImpl`, `MQClientInstance`, `SelectMessageQueueByHash`, `SendCallback`,
`RequestCallback`, `MessageBatch`, `MQAdminImpl`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final, Self, Unpack, overload

from rmqfast._native import MessageView
from rmqfast.arguments import Duration, integer, seconds, suggests_names
from rmqfast.client.instance import ClientInstance, ServiceState, TracedClientArguments
from rmqfast.client.instance.exits import warn_unclosed
from rmqfast.client.instance.request_futures import OnReply
from rmqfast.client.producer.hooks import SendHook
from rmqfast.client.producer.member import ProducerMember
from rmqfast.client.producer.message_batch import BATCH_SIZE
from rmqfast.client.producer.options import ProducerOptions
from rmqfast.client.producer.requests import Added, SendRequest, request, request_async
from rmqfast.client.producer.selectors import QueueSelector, select_by_hash
from rmqfast.client.producer.send_result import SendCallback, SendResult
from rmqfast.client.producer.trace_hooks import SendTraceHook
from rmqfast.client.trace.dispatcher import config_and_trace
from rmqfast.errors import RmqError
from rmqfast.message import Message, MessageQueue
from rmqfast.pickling import not_picklable
from rmqfast.store.frames import Frame
from rmqfast.system import monotonic
from rmqfast.threads import new_future

#: Default timeout of a send with all its attempts, in seconds: Java's `sendMsgTimeout`.
SEND_TIMEOUT = 3.0
_RUNNING = ServiceState.RUNNING


@suggests_names
@not_picklable("make one in each process")
class Producer:
    """Sends messages. Threads may share a producer.

    Args:
        group: The producer group; brokers send transaction checks to any producer of the group.
        options: Retries, compression, limits.
        arguments: Addresses, configuration and traces: see `TracedClientArguments`.

    Raises:
        ArgumentError: An address has no port.

    Example:
        >>> import rmqfast
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     with Producer("shop", name_server=cluster.name_server) as producer:
        ...         producer.send(Message("orders", b"paid", tags="paid", keys="42")).status.value
        'SEND_OK'
    """

    def __init__(
        self, group: str, *, options: ProducerOptions | None = None, **arguments: Unpack[TracedClientArguments]
    ) -> None:
        config, self._trace = config_and_trace(group, "PRODUCE", arguments)
        #: The running part, which the asyncio and transaction producers also use.
        self.member: Final = ProducerMember(group, config, options or ProducerOptions())
        if self._trace is not None:
            self.register_send_hook(SendTraceHook(self._trace))

    @property
    def options(self) -> ProducerOptions:
        """The retries, compression and limits."""
        return self.member.options

    @property
    def group(self) -> str:
        """The producer group, with its namespace."""
        return self.member.group

    @property
    def client_id(self) -> str:
        """The id by which brokers know this client.

        Raises:
            ClientError: The producer is not running.
        """
        self.member.check_running()
        return self.member.instance.client_id

    @property
    def in_flight(self) -> int:
        """Number of asynchronous sends that have no answer yet. The option `max_in_flight` limits it."""
        return self.member.in_flight

    def start(self) -> None:
        """Starts the producer and registers it at brokers.

        Raises:
            ClientError: The producer was started before, the group is invalid or already has a producer here, or no
                name server is configured.
        """
        self.member.start()
        if self._trace is not None:
            self._trace.start(Producer, self.member.instance.config)

    def start_inside(self, instance: ClientInstance) -> None:
        """Starts the producer as a part of an instance. The producer ends with the instance."""
        self.member.run_on(instance)

    def shutdown(self) -> None:
        """Waits a moment for sends in flight, unregisters and closes. A second call does nothing."""
        self.member.shutdown()
        if self._trace is not None:
            self._trace.shutdown()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def __del__(self) -> None:
        # a failed constructor has no member
        if hasattr(self, "member") and self.member.is_registered:
            warn_unclosed(self, self.member.instance.pid, f"{type(self).__name__} of the group {self.group}")

    def send(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> SendResult:
        """Sends a message and waits until a broker has stored it. Returns where it is stored.

        Without a queue, messages rotate over the topic's queues, and a failed attempt is retried at another broker.
        With a queue or selector there is one attempt.

        Args:
            message: The message.
            queue: The target queue, of the message's topic.
            timeout: Seconds, or a timedelta, for all attempts together.
            selector: Chooses the queue; called with the topic's queues, the message and `argument`.
            argument: Passed to the selector.

        Raises:
            ClientError: The message is invalid (13), the topic does not exist (10005), or all attempts failed; then the
                code is that of the last attempt, whose error is the cause.
            ResponseError: The broker refused the message, and there was no retry.
            RemotingTimeoutError: There was no answer in time; the message may be stored.
            RemotingError: The connection was lost, with a chosen queue only; the message may be stored.
        """
        member = self.member
        # checked here, because a call costs time on each send
        if member.state is not _RUNNING:
            member.check_running()
        return member.sender.send(message, queue, seconds("timeout", timeout), selector, argument)

    def send_ordered(self, message: Message, key: str | int, timeout: Duration = SEND_TIMEOUT) -> SendResult:
        """Sends a message to the queue of its key, like `send` with a selector.

        Args:
            message: The message.
            key: Messages with the same key, such as an order's id, go to the same queue while the queues do not change.
            timeout: Seconds to wait.
        """
        return self.send(message, timeout=timeout, selector=select_by_hash, argument=key)

    @overload
    def send_async(
        self,
        message: Message,
        callback: None = None,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> Future[SendResult]: ...

    @overload
    def send_async(
        self,
        message: Message,
        callback: SendCallback,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> None: ...

    def send_async(
        self,
        message: Message,
        callback: SendCallback | None = None,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> Future[SendResult] | None:
        """Sends a message without waiting for the broker.

        While `max_in_flight` sends or `max_in_flight_bytes` bytes are in flight, a further send waits.

        Args:
            message: The message.
            callback: Called once with the `SendResult` or the error, on a thread of the client; it should be short.
                Without a callback, a `Future` is returned, which is slower.
            queue: The target queue, of the message's topic.
            timeout: Seconds for waiting and all attempts together.
            selector: Chooses the queue: see `send`.
            argument: Passed to the selector.

        Raises:
            ClientError: The message is invalid or the topic does not exist; the callback is not called.
            RemotingTimeoutError: Too much was in flight for the whole timeout; the callback is not called.
        """
        member, timeout = self.member, seconds("timeout", timeout)
        if member.state is not _RUNNING:
            member.check_running()
        if callback is not None:
            member.sender.submit(message, queue, timeout, callback, selector, argument)
            return None
        future: Future[SendResult] = new_future()
        # a send in flight cannot be cancelled
        future.set_running_or_notify_cancel()
        member.sender.submit(message, queue, timeout, _into(future), selector, argument)
        return future

    def send_oneway(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        *,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> None:
        """Sends a message once and gets no answer. Failures at the broker stay unknown.

        Args:
            message: The message.
            queue: The target queue, of the message's topic.
            selector: Chooses the queue: see `send`.
            argument: Passed to the selector.

        Raises:
            ClientError: The message is invalid or the topic does not exist.
            RemotingError: The broker cannot be reached.
        """
        self.member.check_running()
        self.member.sender.send_oneway(message, queue, SEND_TIMEOUT, selector, argument)

    def request(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> MessageView:
        """Sends a message, waits until a consumer has replied to it, and returns the reply.

        Unlike 4.9.4's without a queue, which returns the request itself, it always waits for the reply.

        Args:
            message: The message, to which its consumer replies with `create_reply_message`.
            queue: The target queue, of the message's topic.
            timeout: Seconds for the send and the reply together.
            selector: Chooses the queue: see `send`.
            argument: Passed to the selector.

        Returns:
            The reply; its broker and offsets are unknown.

        Raises:
            RequestTimeoutError: The message was sent, but there was no reply in time.
            ClientError: The message was not sent; see `send_async`.

        Example:
            >>> import rmqfast
            >>> cluster = rmqfast.EmbeddedCluster().start()
            >>> producer = rmqfast.Producer("shop", name_server=cluster.name_server)
            >>> consumer = rmqfast.PushConsumer("cashiers", name_server=cluster.name_server)
            >>> @consumer.register_message_listener
            ... def listen(messages, context):
            ...     for message in messages:
            ...         producer.send(rmqfast.create_reply_message(message, b"42 EUR"))
            ...     return rmqfast.ConsumeConcurrentlyStatus.CONSUME_SUCCESS
            >>> consumer.subscribe("prices", "*")
            >>> with producer:
            ...     producer.create_topic("prices")
            ...     with consumer:
            ...         producer.request(rmqfast.Message("prices", b"how much?"), timeout=20).body
            b'42 EUR'
            >>> cluster.stop()
        """
        sending, wait = self._send_request(message, queue, selector, argument), seconds("timeout", timeout)
        return request(sending, self.member.instance.requests, self.client_id, message.topic, wait)

    def request_async(
        self,
        message: Message,
        on_done: OnReply,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        selector: QueueSelector | None = None,
        argument: Any = None,
    ) -> None:
        """Sends a request without waiting. `on_done` is called once, with the reply or the error.

        The callbacks of requests run on a thread of their own.

        Raises:
            ClientError: The message is invalid or the topic does not exist; the callback is not called.
            RemotingTimeoutError: Too much was in flight for the whole timeout; the callback is not called.
        """
        sending, wait = self._send_request(message, queue, selector, argument), seconds("timeout", timeout)
        request_async(sending, self.member.instance.requests, self.client_id, message.topic, wait, on_done)

    def send_batch(
        self,
        messages: Sequence[Message] | Frame,
        queue: MessageQueue | None = None,
        timeout: Duration = SEND_TIMEOUT,
        *,
        topic: str | None = None,
    ) -> SendResult:
        """Sends several messages as one request to one queue: all are stored, or none.

        Args:
            messages: `Message` objects, or anything that yields Arrow record batches with the columns of `send_many`.
                They must have one topic, no delay, and together at most `max_message_size` bytes.
            queue: The target queue.
            timeout: Seconds to wait.
            topic: Topic of rows without a column `topic`.

        Returns:
            One result with the ids of all messages, separated by commas, and the offset of the first.

        Raises:
            ArgumentError: A row cannot be sent.
            ClientError: The messages cannot be sent together; see also `send`.
            RemotingError: See `send`.
        """
        # encoding many rows counts towards the timeout
        member, deadline = self.member, monotonic() + seconds("timeout", timeout)
        member.check_running()
        batch = member.batches.one(messages, topic)
        # hooks get no messages for rows of a table
        shown = messages if isinstance(messages, Sequence) else ()
        return member.sender.send(batch, queue, max(0.0, deadline - monotonic()), messages=shown)

    def send_many(
        self,
        messages: Sequence[Message] | Frame,
        timeout: Duration = SEND_TIMEOUT,
        *,
        topic: str | None = None,
        batch_size: int = BATCH_SIZE,
        in_flight: int = 4,
    ) -> list[SendResult]:
        """Sends many messages as batches, several at a time, each to the next queue. Returns the batches' results.

        Args:
            messages: `Message` objects of one topic without delay, or anything that yields Arrow record batches, as for
                `WritableStore.append_many`, with columns `body`, optionally `topic`, `tags`, `keys`, `properties`,
                `flag`.
            timeout: Seconds for each batch.
            topic: Topic of rows without a column `topic`.
            batch_size: Maximum messages per batch; its bytes are limited by `max_message_size`.
            in_flight: Maximum batches in flight.

        Returns:
            The results of the batches, in order.

        Raises:
            ArgumentError: A row cannot be sent; nothing was sent.
            ClientError: Messages cannot be sent; other batches may be stored. See also `send_batch`.
            RemotingError: See `send_batch`.

        Example:
            >>> import pyarrow as pa, rmqfast
            >>> table = pa.table({"body": [b"a", b"b", b"c"], "tags": ["x", "y", None]})
            >>> with rmqfast.EmbeddedCluster() as cluster:
            ...     with Producer("shop", name_server=cluster.name_server) as producer:
            ...         [str(result.status) for result in producer.send_many(table, topic="orders", batch_size=2)]
            ['SEND_OK', 'SEND_OK']
        """
        member, timeout = self.member, seconds("timeout", timeout)
        batch_size, in_flight = integer("batch_size", batch_size, 1), integer("in_flight", in_flight, 1)
        member.check_running()
        batches = member.batches.many(messages, topic, batch_size)
        # before the first send: raises if the topic does not exist
        for name in {outgoing.topic: None for outgoing, _ in batches}:
            member.sender.queues_of(name)
        results: list[SendResult] = []
        waiting: deque[Future[SendResult]] = deque()
        for outgoing, part in batches:
            # the oldest batch first, so that results keep their order
            if len(waiting) >= in_flight:
                results.append(waiting.popleft().result())
            future: Future[SendResult] = new_future()
            member.sender.submit(outgoing, None, timeout, _into(future), messages=part)
            waiting.append(future)
        return results + [future.result() for future in waiting]

    def fetch_publish_message_queues(self, topic: str) -> list[MessageQueue]:
        """Returns the writable queues of a topic from a name server.

        Raises:
            ClientError: The topic does not exist, or no name server answers.
        """
        self.member.check_running()
        return self.member.fetch_queues(topic)

    def create_topic(
        self,
        topic: str,
        queues: int = 4,
        *,
        key: str | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Creates a topic at all brokers that have the topic `key`.

        Args:
            topic: Name of the new topic.
            queues: Number of readable and writable queues at each broker.
            key: The topic whose brokers create the new topic. Default: the default topic of brokers.
            attributes: Further header fields, such as `topicSysFlag`.

        Raises:
            ClientError: The topic `key` does not exist, or a broker refused.
        """
        self.member.check_running()
        self.member.create_topic(topic, queues, key, attributes)

    def register_send_hook(self, hook: SendHook) -> None:
        """Registers a hook that is called at each attempt to send."""
        self.member.hooks.add(hook)

    def _send_request(
        self, message: Message, queue: MessageQueue | None, selector: QueueSelector | None, argument: Any
    ) -> SendRequest:
        """Returns a function that sends a checked request, with properties that tell to whom the reply goes."""
        member = self.member
        member.check_running()
        topic = member.sender.queues_for(message).topic
        queue = member.sender.chosen_queue(message, queue, selector, argument)

        def send(added: Added, callback: SendCallback, timeout: float) -> None:
            outgoing = member.encoder.encode(message, topic, added)
            # hooks see the properties that were added
            shown = replace(message, properties={**message.properties, **dict(added)})
            member.sender.submit(outgoing, queue, timeout, callback, messages=(shown,))

        return send


def _into(future: Future[SendResult]) -> SendCallback:
    def end(ended: SendResult | RmqError) -> None:
        if isinstance(ended, RmqError):
            future.set_exception(ended)
        else:
            future.set_result(ended)

    return end
