"""A consumer that calls a listener.

Source: RocketMQ's `DefaultMQPushConsumer`, `DefaultMQPushConsumerImpl`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Self, Unpack

from rmqfast.arguments import suggests_names
from rmqfast.client.consumer import MessageSelector, build_subscription_data
from rmqfast.client.consumer.hooks import ConsumeHook, ConsumeHooks, ConsumeTraceHook, FilterHook, FilterHooks
from rmqfast.client.instance import ClientInstance
from rmqfast.client.instance.exits import warn_unclosed
from rmqfast.client.instance.namespaces import wrap
from rmqfast.client.instance.validators import check_consumer_group
from rmqfast.client.producer import Producer
from rmqfast.client.push.consume_status import ConcurrentListener, OrderlyListener, is_in_order
from rmqfast.client.push.options import PushArguments, PushOptions, PushTimings, split_options
from rmqfast.client.push.push_member import PushMember
from rmqfast.client.trace.dispatcher import config_and_trace
from rmqfast.errors import ArgumentError, ClientError, ForkError, RmqError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.message import MessageQueue
from rmqfast.pickling import not_picklable
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_log = logger_of(__name__)


@suggests_names
@not_picklable("make one in each process")
class PushConsumer:
    """Calls a listener with messages as they arrive.

    The listener returns a status. If it raises or returns anything else, the messages are redelivered later; after 16
    retries they become dead letters.

    Args:
        group: The consumer group, whose members share the messages.
        options: Options of consumption.
        timings: Intervals and timeouts.
        arguments: Addresses, traces, and single options such as `consume_thread_min=4`: see `PushArguments`.

    Raises:
        ArgumentError: An address has no port, or an option is unknown.

    Example:
        >>> import queue
        >>> from rmqfast import EmbeddedCluster, Message
        >>> from rmqfast.client.producer import Producer
        >>> from rmqfast.client.push import ConsumeConcurrentlyStatus, PushConsumer
        >>> seen = queue.SimpleQueue()
        >>> def listen(messages, context):
        ...     for message in messages:
        ...         seen.put(message.body)
        ...     return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        >>> with EmbeddedCluster() as cluster:
        ...     with Producer("shop", name_server=cluster.name_server) as producer:
        ...         result = producer.send(Message("orders", b"paid"))
        ...     consumer = PushConsumer("billing", name_server=cluster.name_server)
        ...     consumer.subscribe("orders", "*")
        ...     consumer.register_message_listener(listen)
        ...     with consumer:
        ...         seen.get(timeout=30)
        b'paid'
    """

    def __init__(
        self,
        group: str,
        *,
        options: PushOptions | None = None,
        timings: PushTimings | None = None,
        **arguments: Unpack[PushArguments],
    ) -> None:
        others, single_options = split_options(arguments)
        self._config, self._trace = config_and_trace(group, "CONSUME", others)
        self.options: Final = replace(options or PushOptions(), **single_options)
        self._timings = timings or PushTimings()
        self._bare_group = group
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._listener: Callable[..., Any] | None = None
        self._is_in_order = False
        self.hooks: Final = ConsumeHooks()
        self._filters = FilterHooks()
        if self._trace is not None:
            self.hooks.add(ConsumeTraceHook(self._trace))
        self._state, self._lock, self._pid = "CREATE_JUST", QuietLock(), os.getpid()
        self._member: PushMember | None = None

    @property
    def group(self) -> str:
        """The consumer group, with its namespace."""
        return wrap(self._config.namespace, self._bare_group)

    @property
    def client_id(self) -> str:
        """The id by which brokers know this client.

        Raises:
            ClientError: The consumer was never started.
        """
        return self._any_member().instance.client_id

    def subscribe(self, topic: str, expression: str | MessageSelector | None = "*") -> None:
        """Subscribes to a topic, or changes the expression of a subscription.

        All members of a group must use the same expression: brokers keep only the newest of each group and topic.

        Args:
            topic: The topic.
            expression: Tags joined by `||`, `*` for all, or a `MessageSelector` with SQL92.

        Raises:
            ClientError: The expression contains no tag.
        """
        wrapped = wrap(self._config.namespace, topic)
        try:
            if not topic:
                raise ArgumentError("topic: expected a name, got none")
            subscription = build_subscription_data(wrapped, expression)
        except RmqError as error:
            raise ClientError("subscription exception", next_step=f"{topic!r}, {expression!r}: {error}") from error
        self._subscriptions[wrapped] = subscription
        if self._member is not None and self._member.is_running:
            self._member.subscribe(subscription)

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribes from a topic. The next rebalance releases its queues."""
        wrapped = wrap(self._config.namespace, topic)
        self._subscriptions.pop(wrapped, None)
        if self._member is not None:
            self._member.unsubscribe(wrapped)

    def register_message_listener(
        self, listener: ConcurrentListener | OrderlyListener, *, orderly: bool | None = None
    ) -> None:
        """Sets the listener. Must be called before `start`.

        Args:
            listener: Called with a tuple of messages and a context. A concurrent listener returns a
                `ConsumeConcurrentlyStatus`, an orderly one (one call per queue at a time) a `ConsumeOrderlyStatus`.
            orderly: Whether each queue is consumed in order. Default: whether the listener is marked by `in_order`.

        Raises:
            ArgumentError: The listener is not callable.
        """
        if not callable(listener):
            raise ArgumentError(f"listener: expected something to call, got {listener!r}")
        self._listener = listener
        self._is_in_order = is_in_order(listener) if orderly is None else orderly

    def register_consume_hook(self, hook: ConsumeHook) -> None:
        """Registers a hook that is called before and after each call of the listener."""
        self.hooks.add(hook)

    def register_filter_hook(self, hook: FilterHook) -> None:
        """Registers a hook that filters messages when they arrive."""
        self._filters.add(hook)

    def start(self) -> None:
        """Registers the consumer at brokers. Starts to pull and to call the listener.

        Raises:
            ClientError: The consumer was started before, an option is out of range, there is no listener, the group
                already has a consumer here, no name server is configured or answers, or a broker rejects an expression.
        """
        with self._lock:
            if self._state != "CREATE_JUST":
                raise ClientError(
                    f"The PushConsumer service state not OK, maybe started once, {self._state}",
                    next_step="a consumer is started once, by start() or with; after shutdown() make another one",
                )
            listener = self._check_config()
            config = self._config.with_pid_instance_name() if self.options.is_clustering else self._config
            instance = ClientInstance.of(config, config.client_id())
            # set first, as in Java: after a failure from here on, it cannot be started again
            self._state = "START_FAILED"
            try:
                self._member = PushMember(
                    instance,
                    self.group,
                    listener,
                    self._subscriptions,
                    options=self.options,
                    timings=self._timings,
                    in_order=self._is_in_order,
                    hooks=self.hooks,
                    filters=self._filters,
                )
                self._member.start()
            except BaseException:
                instance.release()
                raise
            self._state = "RUNNING"
            if self._trace is not None:
                self._trace.start(Producer, instance.config)
        _log.info("the consumer [%s] start OK, %s", self.group, self.options.message_model)

    def shutdown(self) -> None:
        """Stores offsets, releases queues to other consumers, and closes the consumer. A second call does nothing.

        Running listeners are waited for as long as the options say; later, other members get their messages again.
        """
        with self._lock:
            if self._state != "RUNNING" or self._member is None or os.getpid() != self._pid:
                return
            self._state = "SHUTDOWN_ALREADY"
        self._member.shutdown()
        if self._trace is not None:
            self._trace.shutdown()
        self._member.instance.release()
        _log.info("the consumer [%s] shutdown OK", self.group)

    def suspend(self) -> None:
        """Stops pulling until `resume`. Buffered messages are still consumed.

        Raises:
            ClientError: The consumer is not running.
        """
        self._running().suspend()

    def resume(self) -> None:
        """Resumes pulling.

        Raises:
            ClientError: The consumer is not running.
        """
        self._running().resume()

    def update_consume_offset(self, queue: MessageQueue, offset: int) -> None:
        """Sets the group's offset of a queue. It is stored with the next offsets, every five seconds.

        Buffered messages are still consumed, and then set their own offsets.

        Args:
            queue: The queue, with the namespace in its topic.
            offset: Offset of the next message.

        Raises:
            ClientError: The consumer is not running.
        """
        self._running().offsets.update_offset(queue, offset)

    def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """Returns all readable queues of a subscribed topic, including queues that other consumers own.

        Args:
            topic: A subscribed topic.

        Raises:
            ClientError: The consumer is not running, the topic is not subscribed, or does not exist.
        """
        member, wrapped = self._running(), wrap(self._config.namespace, topic)
        if member.is_subscribe_topic_need_update(wrapped):
            member.instance.update_route(wrapped)
        queues = member.rebalance.subscribe_info.get(wrapped)
        if queues is None:
            raise ClientError(
                f"The topic[{topic}] not exist", next_step="is it subscribed to, and does a broker have it?"
            )
        return sorted(queues)

    def running_info(self) -> Mapping[str, Any]:
        """Returns the state that `mqadmin consumerStatus` shows: queues, rates, subscriptions, options.

        Raises:
            ClientError: The consumer is not running.
        """
        return self._running().running_info()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def __del__(self) -> None:
        is_running = getattr(self, "_state", "") == "RUNNING" and self._member is not None and self._member.is_running
        if is_running:
            warn_unclosed(self, self._pid, f"{type(self).__name__} of the group {self.group}")

    def _running(self) -> PushMember:
        # the listener may use the consumer before start() returns
        member = self._any_member()
        if not member.is_running:
            raise self._not_running()
        return member

    def _any_member(self) -> PushMember:
        if os.getpid() != self._pid:
            raise ForkError(f"the consumer [{self.group}] is that of a parent process: make another one in this one")
        if self._member is None:
            raise self._not_running()
        return self._member

    def _not_running(self) -> ClientError:
        return ClientError(f"The consumer is not in running status, {self._state}", next_step="start it first")

    def _check_config(self) -> Callable[..., Any]:
        """Checks the configuration. Returns the listener."""
        check_consumer_group(self._bare_group)
        if self._listener is None:
            raise ClientError("messageListener is null", next_step="call register_message_listener first")
        self.options.check()
        return self._listener
