"""A consumer whose application chooses queues and offsets.

Source: RocketMQ's `DefaultMQPullConsumer`, `PullCallback`, `DefaultMQPullConsumerImpl`, `RebalancePullImpl`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeAlias, Unpack

from rmqfast._native import MessageView
from rmqfast.arguments import Duration, seconds, suggests_names
from rmqfast.client.consumer import MessageSelector, OffsetStore, ReadOffsetType, build_subscription_data
from rmqfast.client.consumer.active_consumer import ActiveConsumer
from rmqfast.client.consumer.active_member import ActiveMember, ActiveOptions, ActiveRebalance, check_range
from rmqfast.client.consumer.hooks import FilterHook, FilterHooks
from rmqfast.client.consumer.send_back import SendBack
from rmqfast.client.instance import ClientArguments, ClientConfig, ClientInstance
from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.instance.validators import check_topic
from rmqfast.client.pulling.single_pulls import Pull, PullResult, SinglePulls
from rmqfast.errors import ArgumentError, ClientError, ExpressionError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.pickling import not_picklable
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.threads import new_future


@suggests_names
@dataclass(frozen=True, kw_only=True, slots=True)
class PullOptions(ActiveOptions):
    """Options of a pull consumer. Times are in seconds.

    Attributes:
        max_reconsume_times: Failed consumptions after which a message becomes a dead letter when it is sent back.

    Raises:
        ArgumentError: A number is out of range.

    Example:
        >>> from rmqfast import PullConsumer
        >>> from rmqfast.client.pull import PullOptions
        >>> options = PullOptions(message_model="BROADCASTING")
        >>> consumer = PullConsumer("books", name_server="127.0.0.1:9876", options=options)
        >>> options.message_model
        'BROADCASTING'
    """

    max_reconsume_times: int = 16

    def __post_init__(self) -> None:
        # slots=True replaces the class, so super() would fail
        ActiveOptions.__post_init__(self)
        check_range("max_reconsume_times", self.max_reconsume_times, -1, (1 << 31) - 1)


#: Called with the result or the error of an asynchronous pull.
PullCallback: TypeAlias = Callable[[PullResult | RmqError], None]

_SEND_BACK_TIMEOUT = 3.0
_LEAST_QUEUE, _MOST = 0, (1 << 31) - 1


class PullMember(ActiveMember):
    """The inner part of a pull consumer. `registered` are the topics whose queues the rebalance distributes."""

    def __init__(self, group: str, config: ClientConfig, options: PullOptions) -> None:
        super().__init__(group, config, options)
        self.registered: dict[str, None] = {}

    def subscriptions(self) -> Sequence[SubscriptionData]:
        namespace = self.config.namespace
        return [SubscriptionData(topic=wrap(namespace, topic), sub_version=0) for topic in self.registered]

    def _make_rebalance(self, instance: ClientInstance, offsets: OffsetStore) -> ActiveRebalance:
        self.wanted.update({subscription.topic: subscription for subscription in self.subscriptions()})
        return super()._make_rebalance(instance, offsets)


@suggests_names
@not_picklable("make one in each process")
class PullConsumer(ActiveConsumer[PullMember]):
    """Pulls from queues and offsets that the application chooses. Threads may share a consumer.

    `update_consume_offset` sets an offset in memory. Every 5 s the offsets of queues that the rebalance assigned to
    this member are stored, and all others dropped. To store the offset of any other queue, call
    `offset_store.update_to_broker(queue, offset, oneway=False)`.

    Args:
        group: The consumer group.
        options: How to pull.
        arguments: Addresses and configuration: see `ClientArguments`.

    Raises:
        ArgumentError: An address has no port.

    Example:
        >>> import rmqfast
        >>> from rmqfast.client.producer import Producer
        >>> with rmqfast.EmbeddedCluster() as cluster:
        ...     with Producer("shop", name_server=cluster.name_server) as producer:
        ...         queue = producer.send(rmqfast.Message("orders", b"paid", tags="paid")).queue
        ...     with PullConsumer("books", name_server=cluster.name_server) as consumer:
        ...         result = consumer.pull(queue, "paid || sent", 0, 32)
        >>> result.status.value, result.next_begin_offset, [message.body for message in result.messages]
        ('FOUND', 1, [b'paid'])
    """

    def __init__(self, group: str, *, options: PullOptions | None = None, **arguments: Unpack[ClientArguments]) -> None:
        self.options: Final = options or PullOptions()
        super().__init__(PullMember(group, ClientConfig.of(**arguments), self.options))
        self._filters = FilterHooks()

    @property
    def register_topics(self) -> frozenset[str]:
        """The topics whose queues are distributed among the group's consumers."""
        return frozenset(self._member.registered)

    @register_topics.setter
    def register_topics(self, topics: Iterable[str]) -> None:
        """Sets the topics. Must be called before `start`.

        Raises:
            ClientError: The consumer is running, or the name of a topic is invalid.
        """
        if self.is_running:
            raise ClientError("register_topics are set before the start", next_step="make another consumer")
        named = list(topics)
        for topic in named:
            check_topic(topic)
        self._member.registered = dict.fromkeys(named)

    def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """Returns the readable queues of a topic from a name server.

        Raises:
            ClientError: The consumer is not running, the topic does not exist, or no name server answers.
        """
        self._member.check_running()
        queues = self._member.admin.fetch_subscribe_message_queues(wrap(self._member.config.namespace, topic))
        return [self._member.without_namespace(queue) for queue in queues]

    def fetch_message_queues_in_balance(self, topic: str) -> list[MessageQueue]:
        """Returns the queues of a topic that the rebalance has assigned to this consumer.

        Raises:
            ClientError: The consumer is not running.
            ArgumentError: The topic is missing.
        """
        self._member.check_running()
        if topic is None:
            raise ArgumentError("topic is null")
        full_topic = wrap(self._member.config.namespace, topic)
        return sorted(
            self._member.without_namespace(queue)
            for queue in self._member.rebalance.process_queues.copy()
            if queue.topic == full_topic
        )

    def pull(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        timeout: Duration | None = None,
    ) -> PullResult:
        """Pulls without long polling: the broker answers at once, even without messages.

        Args:
            queue: The queue to pull from.
            expression: Tags joined by `||`, `*` for all, or a `MessageSelector`.
            offset: Offset of the first message.
            max_messages: Maximum number of messages; brokers return at most 32 by default.
            timeout: Seconds to wait. Default: that of the options.

        Raises:
            ClientError: The consumer is not running, an argument is invalid, or the broker is unknown.
            ResponseError: The broker refused.
            RemotingError: There is no answer.
        """
        return self._pull(self._new_pull(queue, expression, offset, max_messages), self._timeout(timeout))

    def pull_block_if_not_found(
        self, queue: MessageQueue, expression: str | MessageSelector | None, offset: int, max_messages: int
    ) -> PullResult:
        """Pulls with long polling: the broker waits for messages, up to about `broker_suspend` seconds.

        Raises:
            ClientError: See `pull`.
            RemotingError: See `pull`.
        """
        pull = self._new_pull(queue, expression, offset, max_messages, suspend=self.options.broker_suspend)
        return self._pull(pull, self.options.suspend_timeout)

    def pull_async(  # noqa: PLR0917 - as Java has them
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: PullCallback | None = None,
        timeout: Duration | None = None,
    ) -> Future[PullResult]:
        """Starts `pull` and returns its `Future`. A callback gets the result or error on a thread of the client.

        Raises:
            ClientError: See `pull`; the callback is not called.
            RemotingError: The broker cannot be reached; the callback is not called.
        """
        pull = self._new_pull(queue, expression, offset, max_messages)
        return self._submit(pull, callback, self._timeout(timeout))

    def pull_block_if_not_found_async(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: PullCallback | None = None,
    ) -> Future[PullResult]:
        """Starts `pull_block_if_not_found`, as `pull_async` starts `pull`.

        Raises:
            ClientError: See `pull_async`.
            RemotingError: See `pull_async`.
        """
        pull = self._new_pull(queue, expression, offset, max_messages, suspend=self.options.broker_suspend)
        return self._submit(pull, callback, self.options.suspend_timeout)

    def update_consume_offset(self, queue: MessageQueue, offset: int) -> None:
        """Sets the group's offset of a queue in memory.

        Raises:
            ClientError: The consumer is not running.
        """
        self._member.check_running()
        self._member.offsets.update_offset(self._member.with_namespace(queue), offset)

    def fetch_consume_offset(self, queue: MessageQueue, from_store: bool) -> int:  # noqa: FBT001 - as Java has it
        """Returns the group's offset of a queue. -1 if there is none, -2 if the broker does not answer.

        Args:
            queue: The queue.
            from_store: Whether to read the store. Otherwise the store is only read if memory has no offset.

        Raises:
            ClientError: The consumer is not running.
        """
        self._member.check_running()
        kind = ReadOffsetType.READ_FROM_STORE if from_store else ReadOffsetType.MEMORY_FIRST_THEN_STORE
        return self._member.offsets.read_offset(self._member.with_namespace(queue), kind)

    def send_message_back(
        self, message: MessageView, delay_level: int, broker_name: str | None = None, group: str | None = None
    ) -> None:
        """Sends a message back, so that it is redelivered later from the group's retry topic.

        Args:
            message: A message that was pulled.
            delay_level: 0 for a level that grows with each retry, -1 for a dead letter.
            broker_name: The broker that has the message. Default: the broker with its store host.
            group: The group to which it is redelivered. Default: this group.

        Raises:
            ClientError: The consumer is not running, or no broker takes the message.
            RemotingError: No broker takes the message.
        """
        self._member.check_running()
        receiver = wrap(self._member.config.namespace, group) if group and group.strip() else self.group
        back = SendBack(self._member.instance, receiver, self.options.max_reconsume_times, timeout=_SEND_BACK_TIMEOUT)
        back.send(message, delay_level, broker_name)

    def register_filter_hook(self, hook: FilterHook) -> None:
        """Registers a hook that filters messages when they arrive."""
        self._filters.add(hook)

    def is_ready(self, queue: MessageQueue) -> bool:
        """Whether a pull can be sent without a wait, since the queue's broker is known and connected."""
        if not self.is_running or queue is None:
            # a pull would raise at once
            return True
        return self._pulls.is_ready(self._member.with_namespace(queue))

    @cached_property
    def _pulls(self) -> SinglePulls:
        return SinglePulls(self._member.instance, self.group, self._filters)

    def _timeout(self, timeout: Duration | None) -> float:
        return self.options.pull_timeout if timeout is None else seconds("timeout", timeout)

    def _pull(self, pull: Pull, timeout: float) -> PullResult:
        result = self._pulls.pull(pull, timeout)
        self._tell_hooks(pull, result)
        return result

    def _submit(self, pull: Pull, callback: PullCallback | None, timeout: float) -> Future[PullResult]:
        future: Future[PullResult] = new_future()
        future.set_running_or_notify_cancel()

        def finish(end: PullResult | RmqError) -> None:
            if isinstance(end, PullResult):
                self._tell_hooks(pull, end)
                future.set_result(end)
            else:
                future.set_exception(end)
            if callback is not None:
                callback(end)

        self._pulls.submit(pull, finish, timeout)
        return future

    def _tell_hooks(self, pull: Pull, result: PullResult) -> None:
        self.hooks.on_pull(self.group, result.messages, pull.queue, self._member.config.namespace)

    def _new_pull(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        *,
        suspend: float = 0.0,
    ) -> Pull:
        self._member.check_running()
        if queue is None:
            raise ClientError("mq is null")
        if offset < 0:
            raise ClientError(
                "offset < 0", next_step="fetch_consume_offset says -1 for none and -2 for a broker out of reach"
            )
        if max_messages <= 0:
            raise ClientError("maxNums <= 0")
        if max_messages > _MOST or not _LEAST_QUEUE <= queue.queue_id <= _MOST:
            raise ClientError(f"expected numbers below {_MOST}, got maxNums {max_messages} and queue {queue.queue_id}")
        wrapped = self._member.with_namespace(queue)
        try:
            subscription = build_subscription_data(wrapped.topic, expression)
        except ExpressionError as error:
            raise ClientError(f"parse subscription error: {error}") from error
        # from now on the topic is rebalanced; its expression is not used, because heartbeats do not carry it
        self._member.wanted.setdefault(wrapped.topic, SubscriptionData(topic=wrapped.topic, sub_version=0))
        if subscription.is_tag_type:
            subscription = replace(subscription, sub_version=0)
        return Pull(wrapped, subscription, offset, max_messages, suspend)
