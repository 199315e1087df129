"""Pulls queue by queue, from where its application says.

Source: `DefaultMQPullConsumer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, overload

from rmqfast._native import MessageView
from rmqfast.client.consumer import MessageSelector, PullResult, ReadOffsetType
from rmqfast.client.consumer.filter_hook import FilterHook
from rmqfast.client.consumer.send_back import SendBack
from rmqfast.client.instance import ClientConfig
from rmqfast.client.instance.config import DEFAULT_INSTANCE_NAME
from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.instance.validators import check_topic
from rmqfast.client.pull.options import PullOptions
from rmqfast.client.pull.pull_consumer_impl import PullCallback, PullConsumerImpl
from rmqfast.errors import ArgumentError, ClientError
from rmqfast.message import MessageQueue

_SEND_BACK_TIMEOUT = 3.0


class PullConsumer(PullConsumerImpl):
    """Pulls queue by queue, from where its application says; threads may share it.

    The application keeps the offsets: nothing is noted of what was pulled. `update_consume_offset` notes one in memory;
    every five seconds those of queues are stored that the rebalance gave to this member, and the others forgotten. Who
    drives queues by hand calls `offset_store.update_to_broker(queue, offset, oneway=False)`.

    Args:
        group: The consumer group.
        name_server: `host:port`, several separated by `;`; unless given, that of `config`, or the environment's
            `NAMESRV_ADDR`.
        instance_name: Sets clients of one process apart.
        namespace: Stands before the names of topics and groups.
        config: Everything else about the cluster: TLS, accounts, timers.
        options: How to pull.

    Raises:
        ArgumentError: An address without a port.

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

    Source: `DefaultMQPullConsumer`.
    """

    def __init__(
        self,
        group: str,
        *,
        name_server: str | Sequence[str] | None = None,
        instance_name: str = DEFAULT_INSTANCE_NAME,
        namespace: str = "",
        config: ClientConfig | None = None,
        options: PullOptions | None = None,
    ) -> None:
        given = {"name_server": name_server, "namespace": namespace or None}
        changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if instance_name != DEFAULT_INSTANCE_NAME:
            changed["instance_name"] = instance_name
        made = ClientConfig(**changed) if config is None else replace(config, **changed)
        super().__init__(group, made, options or PullOptions())

    @property
    def register_topics(self) -> frozenset[str]:
        """The topics whose queues are shared out among the members of the group."""
        return frozenset(self._registered)

    @register_topics.setter
    def register_topics(self, topics: Iterable[str]) -> None:
        """Before the start.

        Raises:
            ClientError: It is running, or a topic has no such name.
        """
        if self.is_running:
            raise ClientError("register_topics are set before the start", next_step="make another consumer")
        named = list(topics)
        for topic in named:
            check_topic(topic)
        self._registered = dict.fromkeys(named)

    def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that may be read, as a name server has them now.

        Raises:
            ClientError: It is not running, nobody has the topic, or no name server answers.

        Source: `DefaultMQPullConsumer.fetchSubscribeMessageQueues`.
        """
        self._check_running()
        queues = self._admin.fetch_subscribe_message_queues(wrap(self._config.namespace, topic))
        return [self._shown(queue) for queue in queues]

    def fetch_message_queues_in_balance(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that the rebalance gave to this member.

        Raises:
            ClientError: It is not running.
            ArgumentError: There is no topic.

        Source: `DefaultMQPullConsumer.fetchMessageQueuesInBalance`.
        """
        self._check_running()
        if topic is None:
            raise ArgumentError("topic is null")
        wanted = wrap(self._config.namespace, topic)
        return sorted(self._shown(queue) for queue in self._rebalance.process_queues.copy() if queue.topic == wanted)

    def pull(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        timeout: float | None = None,
    ) -> PullResult:
        """Pulls, and waits for the answer; where there is nothing, that is the answer.

        Args:
            queue: Where from.
            expression: Tags joined by `||`, `*` for all, or a `MessageSelector`.
            offset: Of the first message.
            max_messages: How many at most; brokers have limits of their own, 32 as they are shipped.
            timeout: How long to wait, in seconds; that of the options unless given.

        Raises:
            ClientError: It is not running, an argument is not such as brokers take, or the broker is not known.
            ResponseError: The broker refused.
            RemotingError: There is no answer.

        Source: `DefaultMQPullConsumer.pull`.
        """
        return self._pulled(self._checked(queue, expression, offset, max_messages), self._timeout(timeout), block=False)

    def pull_block_if_not_found(
        self, queue: MessageQueue, expression: str | MessageSelector | None, offset: int, max_messages: int
    ) -> PullResult:
        """As `pull`, but where there is nothing, the broker waits for messages: for `broker_suspend` seconds or so.

        Raises:
            ClientError: As `pull`.
            RemotingError: As `pull`.

        Source: `DefaultMQPullConsumer.pullBlockIfNotFound`.
        """
        wanted = self._checked(queue, expression, offset, max_messages)
        return self._pulled(wanted, self.options.suspend_timeout, block=True)

    @overload
    def pull_async(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: None = None,
        timeout: float | None = None,
    ) -> Future[PullResult]: ...

    @overload
    def pull_async(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: PullCallback,
        timeout: float | None = None,
    ) -> None: ...

    def pull_async(  # noqa: PLR0917 - as Java has them
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: PullCallback | None = None,
        timeout: float | None = None,
    ) -> Future[PullResult] | None:
        """As `pull`, without waiting.

        Args:
            queue: As in `pull`.
            expression: As in `pull`.
            offset: As in `pull`.
            max_messages: As in `pull`.
            callback: Is called once with the result or the error, on one of the client's threads. Without one, a
                `Future` is returned.
            timeout: As in `pull`.

        Raises:
            ClientError: As `pull`; there will be no call.
            RemotingError: Nobody can be asked; there will be no call.

        Source: `DefaultMQPullConsumer.pull` with a `PullCallback`.
        """
        wanted = self._checked(queue, expression, offset, max_messages)
        return self._submitted(wanted, callback, self._timeout(timeout), block=False)

    @overload
    def pull_block_if_not_found_async(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: None = None,
    ) -> Future[PullResult]: ...

    @overload
    def pull_block_if_not_found_async(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: PullCallback,
    ) -> None: ...

    def pull_block_if_not_found_async(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector | None,
        offset: int,
        max_messages: int,
        callback: PullCallback | None = None,
    ) -> Future[PullResult] | None:
        """As `pull_block_if_not_found`, without waiting.

        Raises:
            ClientError: As `pull_async`.
            RemotingError: As `pull_async`.

        Source: `DefaultMQPullConsumer.pullBlockIfNotFound` with a `PullCallback`.
        """
        wanted = self._checked(queue, expression, offset, max_messages)
        return self._submitted(wanted, callback, self.options.suspend_timeout, block=True)

    def update_consume_offset(self, queue: MessageQueue, offset: int) -> None:
        """Notes in memory where to go on.

        Raises:
            ClientError: It is not running.

        Source: `DefaultMQPullConsumer.updateConsumeOffset`.
        """
        self._check_running()
        self._offsets.update_offset(self._wrapped(queue), offset)

    def fetch_consume_offset(self, queue: MessageQueue, from_store: bool) -> int:  # noqa: FBT001 - as Java has it
        """Where to go on: -1 where nobody knows, -2 where the broker does not answer.

        Args:
            queue: The queue.
            from_store: Whether to ask the store; otherwise it is asked where there is nothing in memory.

        Raises:
            ClientError: It is not running.

        Source: `DefaultMQPullConsumer.fetchConsumeOffset`.
        """
        self._check_running()
        kind = ReadOffsetType.READ_FROM_STORE if from_store else ReadOffsetType.MEMORY_FIRST_THEN_STORE
        return self._offsets.read_offset(self._wrapped(queue), kind)

    def send_message_back(
        self, message: MessageView, delay_level: int, broker_name: str | None = None, group: str | None = None
    ) -> None:
        """Gives a message back: the group, or another one, gets it once more later, from its retry topic.

        Args:
            message: What was pulled.
            delay_level: 0 for one that grows with the times it was consumed, -1 for the dead letters.
            broker_name: The broker that has it; unless given, the one that stored it, by its address.
            group: Who shall have it.

        Raises:
            ClientError: It is not running, or no broker takes it.
            RemotingError: No broker takes it.

        Source: `DefaultMQPullConsumer.sendMessageBack`.
        """
        self._check_running()
        receiver = wrap(self._config.namespace, group) if group and group.strip() else self.group
        back = SendBack(self._instance, self.options.max_reconsume_times, _SEND_BACK_TIMEOUT)
        back.send(message, delay_level, broker_name, receiver)

    def register_filter_hook(self, hook: FilterHook) -> None:
        """Has a hook asked which of the messages that come from now on are left out.

        Source: `DefaultMQPullConsumerImpl.registerFilterMessageHook`.
        """
        self._filters.add(hook)
