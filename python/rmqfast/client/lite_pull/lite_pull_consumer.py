"""A consumer that pulls in the background.

Source: RocketMQ's `DefaultLitePullConsumer`, `AssignedMessageQueue`, `DefaultLitePullConsumerImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, Unpack

from rmqfast._native import Fetched, MessageView, fetched_to_arrow, messages_to_arrow
from rmqfast.arguments import Duration, Time, seconds, suggests_names
from rmqfast.client.consumer import UNREACHABLE, MessageSelector, ReadOffsetType
from rmqfast.client.consumer.active_consumer import ActiveConsumer
from rmqfast.client.consumer.hooks import ConsumeTraceHook
from rmqfast.client.instance import ServiceState, TracedClientArguments
from rmqfast.client.lite_pull.lite_pull_member import LitePullMember, SubscriptionType, TopicMessageQueueChangeListener
from rmqfast.client.lite_pull.options import LitePullOptions
from rmqfast.client.pulling.illegal_offset import has_illegal_offset, offset_to_go_on_at
from rmqfast.client.pulling.pulled_queues import PulledQueue, messages_of
from rmqfast.client.trace.dispatcher import config_and_trace
from rmqfast.errors import ArgumentError, ClientError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.pickling import not_picklable
from rmqfast.system import monotonic

#: Compressed bytes taken for one Arrow batch, so that it usually fits into 2 MiB after decompression.
_MOST_ROWS = 8192
_MOST_BYTES = 768 << 10

PulledAnswer: TypeAlias = tuple[PulledQueue[None], Fetched]


@suggests_names
@not_picklable("make one in each process")
class LitePullConsumer(ActiveConsumer[LitePullMember]):
    """Pulls in the background; `poll` returns the messages.

    A `poll` marks its messages as consumed. The next `poll` commits the position if `auto_commit` is on, at most every
    5 s; `commit_sync` commits at once. Positions are stored every 5 s, on shutdown and when a queue is revoked. After a
    shutdown, uncommitted messages of the last `poll` are redelivered.

    Args:
        group: The consumer group.
        options: How to pull.
        arguments: Addresses, configuration and traces: see `TracedClientArguments`.

    Raises:
        ArgumentError: An address has no port.

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
    """

    def __init__(
        self,
        group: str,
        *,
        options: LitePullOptions | None = None,
        **arguments: Unpack[TracedClientArguments],
    ) -> None:
        config, trace = config_and_trace(group, "CONSUME", arguments)
        self.options: Final = options or LitePullOptions()
        super().__init__(LitePullMember(group, config, self.options, trace))
        self._next_commit, self._auto_commit = 0.0, self.options.auto_commit
        if trace is not None:
            self.hooks.add(ConsumeTraceHook(trace))

    @property
    def auto_commit(self) -> bool:
        """Whether `poll` commits the positions of messages that earlier calls returned."""
        return self._auto_commit

    @auto_commit.setter
    def auto_commit(self, is_on: bool) -> None:
        self._auto_commit = is_on

    def subscribe(self, topic: str, expression: str | MessageSelector | None = "*") -> None:
        """Subscribes to a topic. Its queues are distributed among the group's consumers.

        Args:
            topic: The topic; a second call for it changes the expression.
            expression: Tags joined by `||`, `*` for all, or a `MessageSelector`.

        Raises:
            ClientError: The topic or the expression is missing or invalid, or queues were assigned.
        """
        try:
            # the texts of these errors are Java's
            if not topic:
                raise ArgumentError("Topic can not be null or empty.")
            self._member.subscribe(topic, expression)
        except RmqError as error:
            raise ClientError(f"subscribe exception: {error}") from error

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribes from a topic and drops its backlog."""
        self._member.unsubscribe(topic)

    def assign(self, queues: Iterable[MessageQueue]) -> None:
        """Pulls exactly the given queues. There is no rebalance.

        Raises:
            ArgumentError: `queues` is empty.
            ClientError: The consumer has subscriptions.
        """
        assigned = [self._member.with_namespace(queue) for queue in queues or ()]
        if not assigned:
            raise ArgumentError("Message queues can not be null or empty.")
        self._member.assign(assigned)

    @property
    def assignment(self) -> list[MessageQueue]:
        """Returns the queues that are pulled now."""
        return [self._member.without_namespace(pulled.queue) for pulled in self._member.queues.queues()]

    @property
    def backlog(self) -> int:
        """Number of messages that wait for `poll`."""
        return self._member.queues.backlog

    def poll(self, timeout: Duration | None = None) -> list[MessageView]:
        """Returns the messages of one pull of one queue. An empty list after the timeout.

        Args:
            timeout: Seconds to wait. Default: that of the options.

        Raises:
            ClientError: The consumer is not running.
            ArgumentError: The timeout is negative.
        """
        deadline = monotonic() + self._before_poll(timeout)
        while (answers := self._member.queues.take(max(0.0, deadline - monotonic()))) is not None:
            for pulled, fetched in answers:
                if self._has_messages(pulled, fetched) and (messages := self._messages(pulled, fetched)):
                    return messages
        return []

    def poll_arrow(self, timeout: Duration | None = None, columns: Sequence[str] | None = None) -> Any:
        """Returns messages as one Arrow batch, without creating an object for each message.

        Args:
            timeout: Seconds to wait for the first message. Default: that of the options.
            columns: Columns to return, in this order. Default: all.

        Returns:
            An object with `__arrow_c_array__`, for `pyarrow.record_batch` and others: backlog of one broker's queues,
            up to about 8,192 messages or 1 MiB of records. None after the timeout.

        Raises:
            ClientError: The consumer is not running.
            ArgumentError: The timeout is negative.
            UnknownColumnError: A column does not exist; no message is lost.
        """
        deadline = monotonic() + self._before_poll(timeout)
        names = None if columns is None else list(columns)
        if names is not None:
            # raises for unknown columns before messages are taken
            messages_to_arrow([], names)
        while answers := self._gather(deadline):
            batch = self._arrow(answers, names)
            if batch is not None:
                return batch
        return None

    def __iter__(self) -> Iterator[MessageView]:
        """Yields messages until shutdown. Calls `poll`, so that the messages of one pull are committed together."""
        while self.is_running:
            try:
                messages = self.poll()
            except ClientError:
                if self._member.state is ServiceState.SHUTDOWN_ALREADY:
                    # another thread has shut the consumer down
                    return
                raise
            yield from messages

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Moves to an offset of a queue and drops the queue's backlog.

        Raises:
            ClientError: The queue is not assigned, the offset is out of range, or the broker does not answer.
        """
        self._member.check_running()
        wrapped = self._member.with_namespace(queue)
        self._check_assigned(wrapped)
        least, most = self._member.admin.min_offset(wrapped), self._member.admin.max_offset(wrapped)
        # the end is a valid offset: that of the next message
        if not least <= offset <= most:
            raise ClientError(f"Seek offset illegal, seek offset = {offset}, min offset = {least}, max offset = {most}")
        # revoked since the check
        if not self._member.queues.seek(wrapped, offset):
            self._check_assigned(wrapped)

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """Moves to the first message of a queue.

        Raises:
            ClientError: See `seek`.
        """
        self.seek(queue, self.min_offset(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """Moves to the end of a queue.

        Raises:
            ClientError: See `seek`.
        """
        self.seek(queue, self.max_offset(queue))

    def seek_to_time(self, queue: MessageQueue, timestamp: Time) -> None:
        """Moves to the offset that `offset_for_timestamp` returns for a time.

        Args:
            queue: The queue.
            timestamp: A datetime, milliseconds since 1970, or any other time that `MessageStore.scan` takes.

        Raises:
            ClientError: See `seek`.
        """
        self.seek(queue, self.offset_for_timestamp(queue, timestamp))

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Pauses pulls of queues. `poll` still returns their backlog. Queues that are not assigned are ignored."""
        self._member.queues.pause(map(self._member.with_namespace, queues), is_paused=True)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Resumes pulls of queues."""
        self._member.queues.pause(map(self._member.with_namespace, queues), is_paused=False)

    def is_paused(self, queue: MessageQueue) -> bool:
        """Whether pulls of a queue are paused. True if the queue is not assigned."""
        pulled = self._member.queues.get(self._member.with_namespace(queue))
        return pulled is None or pulled.is_paused

    def commit_sync(self) -> None:
        """Commits the positions of all queues to memory, which is stored every five seconds and at shutdown."""
        self._member.check_process()
        self._commit()

    def commit(self, queues: Iterable[MessageQueue] | None = None, *, persist: bool = False) -> None:
        """Commits positions to memory, which is stored every five seconds and at shutdown.

        Args:
            queues: The queues. Default: all. Queues that are not assigned are ignored.
            persist: Whether to store the positions of all queues at once.

        Raises:
            ClientError: The consumer is not running.
        """
        self._member.check_running()
        wrapped = None if queues is None else list(map(self._member.with_namespace, queues))
        # an empty list means no queues, not all
        if wrapped == []:
            return
        self._commit(wrapped)
        if persist:
            # all queues: Java stores only those passed, and thereby forgets the positions of the others
            self._member.persist_consumer_offset()

    def committed(self, queue: MessageQueue) -> int:
        """Returns the committed offset of a queue, from memory or else from the store. -1 if there is none.

        Raises:
            ClientError: The consumer is not running, or the broker does not answer.
        """
        self._member.check_running()
        offset = self._member.offsets.read_offset(
            self._member.with_namespace(queue), ReadOffsetType.MEMORY_FIRST_THEN_STORE
        )
        if offset == UNREACHABLE:
            raise ClientError(
                f"the broker {queue.broker_name} does not tell an offset", next_step="a warning in the log says why"
            )
        return offset

    def offset_for_timestamp(self, queue: MessageQueue, timestamp: Time) -> int:
        """Returns the offset of the message stored nearest to a time. RocketMQ 5: of the first one since that time.

        Args:
            queue: The queue.
            timestamp: A datetime, milliseconds since 1970, or any other time that `MessageStore.scan` takes.

        Raises:
            ClientError: The consumer is not running, or the broker is unknown or does not answer.
        """
        return self.search_offset(queue, timestamp)

    def fetch_message_queues(self, topic: str) -> list[MessageQueue]:
        """Returns the readable queues of a topic from a name server.

        Raises:
            ClientError: The consumer is not running, the topic does not exist, or no name server answers.
        """
        self._member.check_running()
        return sorted(self._member.fetch_queues(topic))

    def register_topic_message_queue_change_listener(
        self, topic: str, listener: TopicMessageQueueChangeListener
    ) -> None:
        """Registers a listener for changes of a topic's queues. The queues are checked every 30 seconds.

        Args:
            topic: The topic.
            listener: Called with the topic and its queues, on a thread of the client.

        Raises:
            ClientError: The topic or the listener is missing.
        """
        if not topic or listener is None:
            raise ClientError("Topic or listener is null")
        self._member.watch.register(topic, listener)
        if self.is_running:
            self._member.watch.fetch(topic)

    def on_arrival(self, callback: Callable[[], object]) -> None:
        """Sets a callback for new messages and for the shutdown. For event loops, which cannot block in `poll`.

        Args:
            callback: Called on any thread, sometimes without messages. It must not block or call the consumer.
        """
        self._member.on_arrival = callback

    def _commit(self, queues: Iterable[MessageQueue] | None = None) -> None:
        pulled = self._member.queues.queues() if queues is None else filter(None, map(self._member.queues.get, queues))
        for each in pulled:
            # -1: nothing was consumed yet
            if each.consume_offset >= 0:
                self._member.offsets.update_offset(each.queue, each.consume_offset)

    def _before_poll(self, timeout: Duration | None) -> float:
        self._member.check_running()
        wait = self.options.poll_timeout if timeout is None else seconds("timeout", timeout)
        now = monotonic()
        # as in `DefaultLitePullConsumerImpl.maybeAutoCommit`
        if self._auto_commit and now >= self._next_commit:
            self._commit()
            self._next_commit = now + self.options.auto_commit_interval
        return wait

    def _check_assigned(self, queue: MessageQueue) -> None:
        if self._member.queues.get(queue) is None:
            maybe = ", may be rebalancing" if self._member.type is SubscriptionType.SUBSCRIBE else ""
            raise ClientError(f"The message queue is not in assigned list{maybe}, message queue: {queue}")

    def _has_messages(self, pulled: PulledQueue[None], fetched: Fetched) -> bool:
        if has_illegal_offset(fetched):
            self._member.queues.go_on_at(pulled, offset_to_go_on_at(self._member.instance.api, pulled, fetched))
        if fetched.offsets is None:
            return False
        # as in Java, offsets of filtered messages after the last one are committed with a later message
        pulled.consume_offset = fetched.offsets[1] + 1
        return True

    def _gather(self, deadline: float) -> list[PulledAnswer]:
        # a batch has one broker name: messages of other brokers return to their queues
        answers, others = list[PulledAnswer](), list[PulledAnswer]()
        rows = size = 0
        while rows < _MOST_ROWS and size < _MOST_BYTES:
            # waits for the first answer only
            wait = 0.0 if answers else max(0.0, deadline - monotonic())
            new = self._member.queues.take(wait)
            if new is None:
                break
            for pulled, fetched in new:
                if not self._has_messages(pulled, fetched):
                    continue
                is_other = answers and pulled.queue.broker_name != answers[0][0].queue.broker_name
                (others if is_other else answers).append((pulled, fetched))
                rows, size = rows + len(fetched), size + fetched.size
        self._give_back(others)
        return answers

    def _give_back(self, answers: list[PulledAnswer]) -> None:
        # the last answer first, so that the queues keep their order
        for pulled, fetched in reversed(answers):
            pulled.consume_offset = fetched.offsets[0] if fetched.offsets else pulled.consume_offset
            self._member.queues.give_back(fetched)

    def _messages(self, pulled: PulledQueue[None], fetched: Fetched) -> list[MessageView]:
        namespace = self._member.config.namespace
        messages = messages_of(fetched, namespace)
        if self.hooks:
            self.hooks.on_pull(self.group, messages, pulled.queue, namespace)
        return messages

    def _arrow(self, answers: list[PulledAnswer], columns: list[str] | None) -> Any:
        # namespaces and hooks need an object per message
        while not (self._member.config.namespace or self.hooks):
            batches = fetched_to_arrow([fetched for _, fetched in answers], columns)
            if len(batches) <= 1:
                return batches[0] if batches else None
            if len(answers) == 1:
                break
            # too large after decompression: half of the messages return to their queues
            half = len(answers) // 2
            self._give_back(answers[half:])
            del answers[half:]
        messages = [message for each in answers for message in self._messages(*each)]
        return messages_to_arrow(messages, columns) if messages else None
