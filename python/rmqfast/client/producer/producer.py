"""Sends messages.

Source: `DefaultMQProducer`, `DefaultMQProducerImpl`.
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
from rmqfast.client.instance.request_futures import OnReply
from rmqfast.client.instance.unclosed import warn_unclosed
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
from rmqfast.threads import new_future

#: How long a send may take with all its attempts, in seconds: Java's `sendMsgTimeout`.
SEND_TIMEOUT = 3.0
_RUNNING = ServiceState.RUNNING


@suggests_names
@not_picklable("make one in each process")
class Producer:
    """Sends messages; threads may share it.

    Args:
        group: The producer group: transactions are checked back by group.
        options: How to send: retries, compression, limits.
        arguments: How to reach the cluster, and traces: `TracedClientArguments`.

    Raises:
        ArgumentError: An address without a port.

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
        #: What it is made of: for the producers of asyncio, and of transactions.
        self.member: Final = ProducerMember(group, config, options or ProducerOptions())
        if self._trace is not None:
            self.register_send_hook(SendTraceHook(self._trace))

    @property
    def options(self) -> ProducerOptions:
        """Its retries, compression and limits."""
        return self.member.options

    @property
    def group(self) -> str:
        """The producer group, with its namespace."""
        return self.member.group

    @property
    def client_id(self) -> str:
        """The name of this client at brokers.

        Raises:
            ClientError: It is not started.
        """
        self.member.check_running()
        return self.member.instance.client_id

    @property
    def in_flight(self) -> int:
        """Asynchronous sends that have no answer yet; `max_in_flight` of the options at most."""
        return self.member.in_flight.count

    def start(self) -> None:
        """Starts it: from now on brokers know it, and it may send.

        Raises:
            ClientError: It was started before, the group is not allowed or has a producer in this instance, or no name
                server is known.
        """
        self.member.start()
        if self._trace is not None:
            self._trace.start(Producer, self.member.instance.config)

    def start_inside(self, instance: ClientInstance) -> None:
        """Starts it as a part of an instance, which does not know it and ends with its other users."""
        self.member.run_on(instance)

    def shutdown(self) -> None:
        """Waits briefly for sends in flight, unregisters and closes. Idempotent."""
        self.member.shutdown()
        if self._trace is not None:
            self._trace.shutdown()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def __del__(self) -> None:
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
        """Sends a message and waits until a broker has it.

        Without a queue a thread's messages go from queue to queue, and where a broker does not take one, to another
        broker. With a queue or a selector there is one attempt.

        Args:
            message: What to send.
            queue: Where it goes, of the message's topic.
            timeout: For all attempts together: seconds, or a timedelta.
            selector: Chooses the queue, called with the topic's queues, the message and `argument`.
            argument: What the selector goes by.

        Raises:
            ClientError: The message is not such as brokers take (13), nobody has the topic (10005), or all attempts
                failed: the code says how the last one did, its cause is the error.
            ResponseError: The broker refused the message, and none else was asked.
            RemotingTimeoutError: No answer in time; the message may be stored.
            RemotingError: As above, of a connection that ended; only where the queue was chosen.
        """
        member = self.member
        if member.state is not _RUNNING:
            member.check_running()
        return member.sender.send(message, queue, seconds("timeout", timeout), selector, argument)

    def send_ordered(self, message: Message, key: str | int, timeout: Duration = SEND_TIMEOUT) -> SendResult:
        """Sends a message to the queue of all messages with that key; as `send` with a selector.

        Args:
            message: What to send.
            key: As of an order: what has one key stays in one queue while the topic's queues are the same.
            timeout: In seconds.
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

        While `max_in_flight` sends are on their way, or `max_in_flight_bytes` bytes, a further one waits.

        Args:
            message: What to send.
            callback: Is called once with the `SendResult` or the error, on one of the client's threads; it should be
                short. Without one, a `Future` is returned, which costs more.
            queue: Where it goes, of the message's topic.
            timeout: For waiting, and for all attempts, in seconds.
            selector: Chooses the queue, as in `send`.
            argument: What the selector goes by.

        Raises:
            ClientError: The message is not such as brokers take, or nobody has the topic; there will be no call.
            RemotingTimeoutError: Too much was on its way until the time was over; there will be no call.
        """
        member, timeout = self.member, seconds("timeout", timeout)
        if member.state is not _RUNNING:
            member.check_running()
        if callback is not None:
            member.sender.submit(message, queue, timeout, callback, selector, argument)
            return None
        future: Future[SendResult] = new_future()
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
        """Sends a message, once, and never knows what became of it.

        Args:
            message: What to send.
            queue: Where it goes, of the message's topic.
            selector: Chooses the queue, as in `send`.
            argument: What the selector goes by.

        Raises:
            ClientError: The message is not such as brokers take, or nobody has the topic.
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
        """Sends a message and waits until a consumer has replied to it.

        Args:
            message: What to send; whoever consumes it replies with `create_reply_message`.
            queue: Where it goes, of the message's topic.
            timeout: For the message and the reply together, in seconds.
            selector: Chooses the queue, as in `send`.
            argument: What the selector goes by.

        Returns:
            The reply; broker and offsets of it are not known.

        Raises:
            RequestTimeoutError: It was sent, and nobody replied in time.
            ClientError: It was not sent: says why; and as `send_async`.

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

        Source: `DefaultMQProducer.request`. That of 4.9.4 without a queue gives back the request itself as soon as it
            is sent; this one waits for the reply.
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
        """Sends a request without waiting.

        `on_done` is called once with the reply or the error, on a thread that only such calls are made on.

        Raises:
            ClientError: The message is not such as brokers take, or nobody has the topic; there will be no call.
            RemotingTimeoutError: Too much was on its way until the time was over; there will be no call.
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
        """Sends several messages in one request to one queue: all of them are stored, or none.

        Args:
            messages: `Message` objects, or anything that gives Arrow record batches, with columns as in `send_many`: of
                one topic, not delayed; together at most `max_message_size` bytes. `send_many` cuts what is larger.
            queue: Where they go.
            timeout: In seconds.
            topic: Of rows without a column `topic`.

        Returns:
            One result: its ids are those of all messages, separated by commas, its offset that of the first.

        Raises:
            ArgumentError: A row that cannot be sent.
            ClientError: They cannot be sent together; and as `send`.
            RemotingError: As `send`.

        Example:
            >>> import pyarrow as pa, rmqfast
            >>> table = pa.table({"body": [b"a", b"b", b"c"], "tags": ["x", "y", None]})
            >>> with rmqfast.EmbeddedCluster() as cluster:
            ...     with Producer("shop", name_server=cluster.name_server) as producer:
            ...         len(producer.send_batch(table, topic="orders").msg_id.split(","))
            3
        """
        member, wait = self.member, seconds("timeout", timeout)
        member.check_running()
        made = member.batches.one(messages, topic)
        shown = messages if isinstance(messages, Sequence) else ()
        return member.sender.send(made, queue, wait, messages=shown)

    def send_many(
        self,
        messages: Sequence[Message] | Frame,
        timeout: Duration = SEND_TIMEOUT,
        *,
        topic: str | None = None,
        batch_size: int = BATCH_SIZE,
        in_flight: int = 4,
    ) -> list[SendResult]:
        """Sends many messages as batches, several of them on their way at once; queue after queue.

        Args:
            messages: `Message` objects that may be sent together, or anything that gives Arrow record batches, as
                `WritableStore.append_many` takes it: its columns are `body`, and as wanted `topic`, `tags`, `keys`,
                `properties`, `flag`.
            timeout: For each batch, in seconds.
            topic: Of rows without a column `topic`.
            batch_size: Messages of a batch at most; its bytes are at most `max_message_size`.
            in_flight: Batches on their way at once.

        Returns:
            A result for each batch, in order.

        Raises:
            ArgumentError: A row that cannot be sent; nothing was sent.
            ClientError: Messages that cannot be sent; and as `send_batch`: those of other batches may be stored.
            RemotingError: As `send_batch`.

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
        # before the first is sent: of a topic that nobody has, none is
        for name in {outgoing.topic: None for outgoing, _ in batches}:
            member.sender.queues_of(name)
        results: list[SendResult] = []
        waiting: deque[Future[SendResult]] = deque()
        for outgoing, part in batches:
            if len(waiting) >= in_flight:
                results.append(waiting.popleft().result())
            future: Future[SendResult] = new_future()
            member.sender.submit(outgoing, None, timeout, _into(future), messages=part)
            waiting.append(future)
        return results + [future.result() for future in waiting]

    def fetch_publish_message_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that may be written to, as a name server has them now.

        Raises:
            ClientError: Nobody has the topic, or no name server answers.
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
        """Makes a topic at all brokers that have another one.

        Args:
            topic: Its name.
            queues: How many it gets at each broker, to read from and to write to.
            key: The topic whose brokers get it; the one that new topics are made after unless given.
            attributes: Further header fields, as `topicSysFlag`.

        Raises:
            ClientError: Nobody has `key`, or a broker does not make the topic.
        """
        self.member.check_running()
        self.member.create_topic(topic, queues, key, attributes)

    def register_send_hook(self, hook: SendHook) -> None:
        """Has a hook told of each attempt to send from now on."""
        self.member.hooks.add(hook)

    def _send_request(
        self, message: Message, queue: MessageQueue | None, selector: QueueSelector | None, argument: Any
    ) -> SendRequest:
        """Checks a request; returns a function that sends it with the properties that name the client."""
        member = self.member
        member.check_running()
        topic = member.sender.queues_for(message).topic
        queue = member.sender.chosen_queue(message, queue, selector, argument)

        def send(added: Added, callback: SendCallback, timeout: float) -> None:
            outgoing = member.encoder.encode(message, topic, added)
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
