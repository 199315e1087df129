"""Pulls in the background, and gives what came when it is asked.

Source: `DefaultLitePullConsumer`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from rmqfast._native import MessageView, fetched_to_arrow, messages_to_arrow
from rmqfast.client.consumer import UNREACHABLE, MessageSelector, ReadOffsetType, build_subscription_data
from rmqfast.client.consumer.consume_trace_hook import ConsumeTraceHook
from rmqfast.client.instance import ClientConfig, ServiceState
from rmqfast.client.instance.config import DEFAULT_INSTANCE_NAME
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.lite_pull.assigned_queues import AssignedQueue
from rmqfast.client.lite_pull.cached_batch import CachedBatch
from rmqfast.client.lite_pull.lite_pull_consumer_impl import LitePullConsumerImpl, SubscriptionType
from rmqfast.client.lite_pull.options import LitePullOptions
from rmqfast.client.lite_pull.topic_watch import TopicMessageQueueChangeListener
from rmqfast.client.trace import AsyncTraceDispatcher
from rmqfast.errors import ArgumentError, ClientError, RmqError
from rmqfast.message import MessageQueue

#: What is taken for one Arrow batch, before bodies are decompressed: so that it fits into one of 2 MiB as a rule.
_MOST_ROWS = 8192
_MOST_BYTES = 768 << 10


class LitePullConsumer(LitePullConsumerImpl):
    """Pulls in the background, and gives what came when it is asked.

    What `poll` returns counts as consumed from then on. Where that is, is noted by the next `poll` (every five seconds,
    unless `auto_commit` is off) or by `commit_sync`, and stored every five seconds, at the end, and when a queue is
    given up. So what the last `poll` returned comes once more after the end, unless it was committed; and messages
    that an expression leaves out behind the last one that it lets through are passed over once more.

    Args:
        group: The consumer group.
        name_server: `host:port`, several separated by `;`; unless given, that of `config`, or the environment's
            `NAMESRV_ADDR`.
        instance_name: Sets clients of one process apart.
        namespace: Stands before the names of topics and groups.
        config: Everything else about the cluster: TLS, accounts, timers.
        options: How to pull.
        enable_msg_trace: Whether traces tell what it gets; `Admin.query_msg_trace_by_id` reads them.
        customized_trace_topic: The topic of traces; `RMQ_SYS_TRACE_TOPIC` unless given.

    Raises:
        ArgumentError: An address without a port.

    Example:
        >>> import rmqfast
        >>> from rmqfast.client.producer import Producer
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     with Producer("shop", name_server=cluster.name_server) as producer:
        ...         result = producer.send(rmqfast.Message("orders", b"paid", tags="paid"))
        ...     with LitePullConsumer("books", name_server=cluster.name_server) as consumer:
        ...         consumer.subscribe("orders", "paid || sent")
        ...         [message.body for message in consumer.poll(timeout=10.0)]
        [b'paid']

    Source: `DefaultLitePullConsumer`.
    """

    def __init__(
        self,
        group: str,
        *,
        name_server: str | Sequence[str] | None = None,
        instance_name: str = DEFAULT_INSTANCE_NAME,
        namespace: str = "",
        config: ClientConfig | None = None,
        options: LitePullOptions | None = None,
        enable_msg_trace: bool = False,
        customized_trace_topic: str | None = None,
    ) -> None:
        given = {"name_server": name_server, "namespace": namespace or None}
        changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if instance_name != DEFAULT_INSTANCE_NAME:
            changed["instance_name"] = instance_name
        made = ClientConfig(**changed) if config is None else replace(config, **changed)
        super().__init__(group, made, options or LitePullOptions())
        if enable_msg_trace:
            self._trace = AsyncTraceDispatcher(group, "CONSUME", customized_trace_topic)
            self.hooks.add(ConsumeTraceHook(self._trace))

    @property
    def auto_commit(self) -> bool:
        """Whether `poll` notes now and then what it gave before."""
        return self._auto_commit

    @auto_commit.setter
    def auto_commit(self, is_on: bool) -> None:
        self._auto_commit = is_on

    def subscribe(self, topic: str, expression: str | MessageSelector | None = "*") -> None:
        """Wants messages of a topic, whose queues are shared out among the members of the group.

        Args:
            topic: The topic; one that it wants already is wanted with the new expression from now on.
            expression: Tags joined by `||`, `*` for all, or a `MessageSelector`.

        Raises:
            ClientError: There is no topic, the expression is none, or queues are assigned.

        Source: `DefaultLitePullConsumer.subscribe`.
        """
        try:
            if not topic:
                raise ArgumentError("Topic can not be null or empty.")
            with self._lock:
                self._set_type(SubscriptionType.SUBSCRIBE)
                self._put_subscription(build_subscription_data(wrap(self._config.namespace, topic), expression))
        except RmqError as error:
            raise ClientError(f"subscribe exception: {error}") from error

    def unsubscribe(self, topic: str) -> None:
        """Wants messages of a topic no more; what waits of them is thrown away.

        Source: `DefaultLitePullConsumer.unsubscribe`.
        """
        with self._lock:
            self._drop_subscription(wrap(self._config.namespace, topic))

    def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Wants the messages of these queues, whoever else has them, and no others.

        Raises:
            ArgumentError: There are none.
            ClientError: Topics are subscribed to.

        Source: `DefaultLitePullConsumer.assign`.
        """
        wanted = [self._wrapped(queue) for queue in queues or ()]
        if not wanted:
            raise ArgumentError("Message queues can not be null or empty.")
        with self._lock:
            self._set_type(SubscriptionType.ASSIGN)
            self._assign_queues(wanted)

    @property
    def assignment(self) -> list[MessageQueue]:
        """The queues that it has now."""
        return [self._shown(queue) for queue in self._assigned.queues()]

    def poll(self, timeout: float | None = None) -> list[MessageView]:
        """What came with one pull of one queue; nothing where nothing came in time.

        Args:
            timeout: How long to wait, in seconds; that of the options unless given.

        Raises:
            ClientError: It is not running.
            ArgumentError: A timeout below 0.

        Source: `DefaultLitePullConsumer.poll`.
        """
        deadline = time.monotonic() + self._before_poll(timeout)
        while taken := self._take(deadline):
            if messages := self._messages(taken[0]):
                return messages
        return []

    def poll_arrow(self, timeout: float | None = None, columns: Sequence[str] | None = None) -> Any:
        """What came, as one Arrow batch, without an object for each message.

        Args:
            timeout: How long to wait for the first message, in seconds; that of the options unless given.
            columns: Of the row, and in which order; all unless given.

        Returns:
            An object with `__arrow_c_array__`, for `pyarrow.record_batch` and others: as much as waits of one broker's
            queues, up to about 8,192 messages or 1 MiB of records; `None` where nothing came in time.

        Raises:
            ClientError: It is not running.
            ArgumentError: A timeout below 0.
            UnknownColumnError: A column that the row does not have; nothing is lost by it.
        """
        deadline = time.monotonic() + self._before_poll(timeout)
        names = None if columns is None else list(columns)
        if names is not None:
            messages_to_arrow([], names)  # whether there are such columns
        while taken := self._take(deadline, most_messages=_MOST_ROWS, most_bytes=_MOST_BYTES):
            batch = self._arrow(taken, names)
            if batch is not None:
                return batch
        return None

    def __iter__(self) -> Iterator[MessageView]:
        """The messages, one by one, for as long as it runs; commits as `poll` does, whole batches."""
        while self.is_running:
            try:
                messages = self.poll()
            except ClientError:
                if self._state is ServiceState.SHUTDOWN_ALREADY:
                    return  # another thread has ended it
                raise
            yield from messages

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Goes on elsewhere in a queue; what waits of it is thrown away.

        Raises:
            ClientError: It does not have the queue, the queue does not have the offset, or its broker does not answer.

        Source: `DefaultLitePullConsumer.seek`.
        """
        self._check_running()
        wrapped = self._wrapped(queue)
        self._check_assigned(wrapped)
        least, most = self._admin.min_offset(wrapped), self._admin.max_offset(wrapped)
        if not least <= offset <= most:
            raise ClientError(f"Seek offset illegal, seek offset = {offset}, min offset = {least}, max offset = {most}")
        self._seek(wrapped, offset)

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """Goes on at a queue's first message that is still there.

        Raises:
            ClientError: As `seek`.

        Source: `DefaultLitePullConsumer.seekToBegin`.
        """
        self.seek(queue, self.min_offset(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """Goes on behind a queue's last message.

        Raises:
            ClientError: As `seek`.

        Source: `DefaultLitePullConsumer.seekToEnd`.
        """
        self.seek(queue, self.max_offset(queue))

    def seek_to_time(self, queue: MessageQueue, timestamp: int) -> None:
        """Goes on at the message of a time: `seek` to `offset_for_timestamp`.

        Args:
            queue: The queue.
            timestamp: Milliseconds since 1970.

        Raises:
            ClientError: As `seek`.
        """
        self.seek(queue, self.offset_for_timestamp(queue, timestamp))

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Wants nothing new of queues; what waits of them still comes. Those that it does not have are passed over.

        Source: `DefaultLitePullConsumer.pause`.
        """
        self._see_to(self._assigned.pause(map(self._wrapped, queues), is_paused=True))

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Wants messages of queues again.

        Source: `DefaultLitePullConsumer.resume`.
        """
        self._see_to(self._assigned.pause(map(self._wrapped, queues), is_paused=False))

    def is_paused(self, queue: MessageQueue) -> bool:
        """Whether nothing new is wanted of a queue, as of one that it does not have.

        Source: `AssignedMessageQueue.isPaused`.
        """
        return self._assigned.is_paused(self._wrapped(queue))

    def commit_sync(self) -> None:
        """Notes in memory where it is in all its queues; brokers are told every five seconds, and at the end.

        Source: `DefaultLitePullConsumer.commitSync`.
        """
        self._check_process()
        self._commit()

    def commit(self, queues: Iterable[MessageQueue] | None = None, *, persist: bool = False) -> None:
        """Notes in memory where it is in its queues; brokers are told every five seconds, and at the end.

        Args:
            queues: Only these; those that it does not have are passed over.
            persist: Whether to store at once, too, what is noted of all its queues.

        Raises:
            ClientError: It is not running.

        Source: `DefaultLitePullConsumer.commit`.
        """
        self._check_running()
        wanted = None if queues is None else list(map(self._wrapped, queues))
        if wanted == []:
            return
        self._commit(wanted)
        if persist:
            # Java stores these queues alone, and thereby forgets what is noted of the others
            self.persist_consumer_offset()

    def committed(self, queue: MessageQueue) -> int:
        """Where the group goes on in a queue: what is noted, else what is stored; -1 where there is nothing.

        Raises:
            ClientError: It is not running, or the broker does not answer.

        Source: `DefaultLitePullConsumer.committed`.
        """
        self._check_running()
        offset = self._offsets.read_offset(self._wrapped(queue), ReadOffsetType.MEMORY_FIRST_THEN_STORE)
        if offset == UNREACHABLE:
            raise ClientError(
                f"the broker {queue.broker_name} does not tell an offset", next_step="a warning in the log says why"
            )
        return offset

    def offset_for_timestamp(self, queue: MessageQueue, timestamp: int) -> int:
        """The offset of the message that was stored nearest to a time, with 4.9; the first one not before it, with 5.

        Args:
            queue: The queue.
            timestamp: Milliseconds since 1970.

        Raises:
            ClientError: It is not running, or the broker is not known or does not answer.

        Source: `DefaultLitePullConsumer.offsetForTimestamp`.
        """
        return self.search_offset(queue, timestamp)

    def fetch_message_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that may be read, as a name server has them now.

        Raises:
            ClientError: It is not running, nobody has the topic, or no name server answers.

        Source: `DefaultLitePullConsumer.fetchMessageQueues`.
        """
        self._check_running()
        return sorted(self._fetched(topic))

    def register_topic_message_queue_change_listener(
        self, topic: str, listener: TopicMessageQueueChangeListener
    ) -> None:
        """Has a listener told when a topic has got other queues; that is looked at every 30 seconds.

        Args:
            topic: The topic.
            listener: Called with the topic and its queues, on one of the client's threads.

        Raises:
            ClientError: There is no topic or no listener.

        Source: `DefaultLitePullConsumer.registerTopicMessageQueueChangeListener`.
        """
        if not topic or listener is None:
            raise ClientError("Topic or listener is null")
        self._watch.register(topic, listener)
        if self.is_running:
            self._watch.fetch(topic)

    def _before_poll(self, timeout: float | None) -> float:
        self._check_running()
        wait = self.options.poll_timeout if timeout is None else timeout
        if wait < 0:
            raise ArgumentError("Timeout must not be negative")
        self._maybe_auto_commit(time.monotonic())
        return wait

    def _check_assigned(self, queue: MessageQueue) -> None:
        if self._assigned.get(queue) is None:
            maybe = ", may be rebalancing" if self._type is SubscriptionType.SUBSCRIBE else ""
            raise ClientError(f"The message queue is not in assigned list{maybe}, message queue: {queue}")

    def _seek(self, queue: MessageQueue, offset: int) -> None:
        assigned = self._assigned.seek(queue, offset)
        if assigned is None:
            self._check_assigned(queue)
        else:
            self._pullers.start([assigned])

    def _see_to(self, queues: list[AssignedQueue]) -> None:
        if self.is_running:
            self._pullers.see_to(queues)

    def _take(self, deadline: float, *, most_messages: int = 1, most_bytes: int = 1) -> list[CachedBatch]:
        left = max(0.0, deadline - time.monotonic())
        taken = self._assigned.take(left, most_messages=most_messages, most_bytes=most_bytes)
        self._pullers.see_to()
        return taken

    def _messages(self, batch: CachedBatch) -> list[MessageView]:
        messages, namespace = batch.pulled.messages, self._config.namespace
        if namespace:
            topic = unwrap(namespace, batch.queue.topic)
            messages = [message.seen_as(topic=topic) for message in messages]
        self.hooks.pulled(self.group, messages, batch.queue, namespace)
        return messages

    def _arrow(self, taken: list[CachedBatch], columns: list[str] | None) -> Any:
        """One batch of as many of these as fit into one; the others wait again."""
        while not (self._config.namespace or self.hooks):
            made = fetched_to_arrow([batch.pulled for batch in taken], columns)
            if len(made) <= 1:
                return made[0] if made else None
            if len(taken) == 1:
                break
            half = len(taken) // 2
            self._assigned.give_back(taken[half:])
            del taken[half:]
        messages = [message for batch in taken for message in self._messages(batch)]
        return messages_to_arrow(messages, columns) if messages else None
