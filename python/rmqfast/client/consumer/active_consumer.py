"""Consumers that pull by themselves: what both kinds do besides pulling. They start, know queues and offsets, and end.

Source: `DefaultMQPullConsumerImpl`, `DefaultLitePullConsumerImpl`.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, Self

from rmqfast.arguments import Time, milliseconds_of
from rmqfast.client.consumer.active_options import ActiveOptions
from rmqfast.client.consumer.hooks import ConsumeHook, ConsumeHooks
from rmqfast.client.consumer.offset_store import LocalFileOffsetStore, OffsetStore, RemoteBrokerOffsetStore
from rmqfast.client.consumer.queue_admin import QueueAdmin
from rmqfast.client.consumer.rebalance import Rebalance
from rmqfast.client.instance import ClientConfig, ClientInstance, MessageModel, ServiceState
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.instance.validators import check_consumer_group
from rmqfast.errors import ClientError, ForkError, ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.message import MessageQueue
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_log = logger_of(__name__)


class ActiveConsumer(ABC):
    """A consumer without its pulls; a `ConsumerInner`."""

    def __init__(self, group: str, config: ClientConfig, options: ActiveOptions) -> None:
        self._bare_group, self._config, self._active = group, config, options
        #: What the rebalance looks at, by topic.
        self._subscriptions: dict[str, SubscriptionData] = {}
        self._state, self._lock = ServiceState.CREATE_JUST, QuietLock(reentrant=True)
        self._pid, self._began = os.getpid(), 0
        self.hooks: Final = ConsumeHooks()

    @property
    def group(self) -> str:
        """The consumer group, with its namespace."""
        return wrap(self._config.namespace, self._bare_group)

    @property
    def consume_type(self) -> Literal["CONSUME_ACTIVELY"]:
        """The application pulls."""
        return "CONSUME_ACTIVELY"

    @property
    def message_model(self) -> MessageModel:
        """Whether members share the messages."""
        return self._active.message_model

    @property
    def consume_from_where(self) -> str:
        """Where a new group begins."""
        return "CONSUME_FROM_LAST_OFFSET"

    @property
    def is_unit_mode(self) -> bool:
        """Whether it is of a unit."""
        return self._config.is_unit_mode

    @property
    def client_id(self) -> str:
        """What brokers know this client as.

        Raises:
            ClientError: It is not running.
        """
        self._check_running()
        return self._instance.client_id

    @property
    def is_running(self) -> bool:
        """Whether it was started and did not end."""
        return self._state is ServiceState.RUNNING

    @property
    def offset_store(self) -> OffsetStore:
        """Where its offsets are kept; queues stand there with the namespace of their topics.

        Raises:
            ClientError: It is not running.
        """
        self._check_running()
        return self._offsets

    def start(self) -> None:
        """Starts it: brokers will know it.

        Raises:
            ClientError: It was started before, the group is not allowed or has a consumer in this instance, no name
                server is known, or the offsets on this machine cannot be read.

        Source: `DefaultMQPullConsumerImpl.start`, `DefaultLitePullConsumerImpl.start`.
        """
        with self._lock:
            if self._state is not ServiceState.CREATE_JUST:
                raise ClientError(
                    f"The PullConsumer service state not OK, maybe started once, {self._state}",
                    next_step="a consumer is started once, by start() or with; after shutdown() make another one",
                )
            check_consumer_group(self._bare_group)
            shared = self.message_model == "CLUSTERING"
            # a broadcast keeps its name: the client id stands in the path of its offsets
            config = self._config.with_pid_instance_name() if shared else self._config
            self._start_on(ClientInstance.of(config, config.client_id(is_stream=True)))
        self._began = int(time.time() * 1000)
        self._started()
        _log.info("the consumer [%s] start OK", self.group)

    def shutdown(self) -> None:
        """Ends it: offsets are stored, brokers are told. Once more is nothing.

        Source: `DefaultMQPullConsumerImpl.shutdown`, `DefaultLitePullConsumerImpl.shutdown`.
        """
        if os.getpid() != self._pid:
            return  # a fork of the process has none of its threads, and perhaps its locks for ever
        with self._lock:
            if self._state is not ServiceState.RUNNING:
                return
            # while it counts as running: afterwards nothing is stored
            self.persist_consumer_offset()
            self._state = ServiceState.SHUTDOWN_ALREADY
        self._ended()
        self._instance.unregister_consumer(self.group)
        self._instance.release()
        self._rebalance.drop_all()
        _log.info("the consumer [%s] shutdown OK", self.group)

    def register_consume_hook(self, hook: ConsumeHook) -> None:
        """Has a hook told of the messages that the application gets from now on.

        Source: `DefaultMQPullConsumerImpl.registerConsumeMessageHook`.
        """
        self.hooks.add(hook)

    def max_offset(self, queue: MessageQueue) -> int:
        """The offset behind a queue's last message.

        Raises:
            ClientError: It is not running, or the broker is not known or does not answer.

        Source: `MQAdminImpl.maxOffset`.
        """
        self._check_running()
        return self._admin.max_offset(self._wrapped(queue))

    def min_offset(self, queue: MessageQueue) -> int:
        """The offset of a queue's first message that is still there.

        Raises:
            ClientError: As `max_offset`.

        Source: `MQAdminImpl.minOffset`.
        """
        self._check_running()
        return self._admin.min_offset(self._wrapped(queue))

    def search_offset(self, queue: MessageQueue, timestamp: Time) -> int:
        """The offset of the message that was stored nearest to a time, with 4.9; the first one not before it, with 5.

        Args:
            queue: The queue.
            timestamp: A time as of `MessageStore.scan`, such as a datetime or milliseconds since 1970.

        Raises:
            ClientError: As `max_offset`.

        Source: `MQAdminImpl.searchOffset`.
        """
        self._check_running()
        return self._admin.search_offset(self._wrapped(queue), milliseconds_of("timestamp", timestamp))

    def earliest_store_time(self, queue: MessageQueue) -> int:
        """When a queue's first message was stored, in milliseconds since 1970; -1 for an empty queue.

        Raises:
            ClientError: As `max_offset`.

        Source: `MQAdminImpl.earliestMsgStoreTime`.
        """
        self._check_running()
        return self._admin.earliest_store_time(self._wrapped(queue))

    @abstractmethod
    def subscriptions(self) -> Sequence[SubscriptionData]:
        """What heartbeats say that it wants."""

    def do_rebalance(self) -> None:
        """Shares the queues of its topics out anew."""
        if self.is_running:
            self._rebalance.do_rebalance()

    def persist_consumer_offset(self) -> None:
        """Stores the offsets of the queues that it has."""
        if self.is_running:
            self._offsets.persist_all(self._owned_queues())

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        """Takes the queues of a topic that it wants."""
        if topic in self._subscriptions:
            self._rebalance.subscribe_info[topic] = frozenset(queues)

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        """Whether it wants a topic and knows no queues of it."""
        return topic in self._subscriptions and topic not in self._rebalance.subscribe_info

    def running_info(self) -> dict[str, Any]:
        """What administrators are shown.

        Source: `DefaultLitePullConsumerImpl.consumerRunningInfo`.
        """
        properties = {"consumerGroup": self.group, "PROP_CONSUMER_START_TIMESTAMP": str(self._began)}
        return {
            "mqTable": {},
            "properties": {**self._active.as_properties(), **properties},
            "statusTable": {},
            "subscriptionSet": [subscription.to_json() for subscription in self.subscriptions()],
        }

    def reset_offset(self, topic: str, _offsets: Mapping[MessageQueue, int]) -> None:
        """Does nothing, as Java's: only consumers that are given messages go elsewhere when an administrator says so.

        Source: `MQClientInstance.resetOffset`.
        """
        _log.warning("offsets of group %s and topic %s are not reset: the group pulls, use seek", self.group, topic)

    def consume_message_directly(self, _message: Any, _broker_name: str | None) -> dict[str, Any]:
        """Has no listener that a message could be given to.

        Raises:
            ResponseError: Always.

        Source: `MQClientInstance.consumeMessageDirectly`.
        """
        remark = f"The Consumer Group <{self.group}> not exist in this consumer"
        raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """The offsets of a topic that are in memory."""
        return self._offsets.clone(topic)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.shutdown()  # what a start has begun before it failed
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    @abstractmethod
    def _make_rebalance(self, instance: ClientInstance, offsets: OffsetStore) -> Rebalance[Any]:
        """How queues are shared out."""

    @abstractmethod
    def _owned_queues(self) -> Iterable[MessageQueue]:
        """The queues whose offsets are stored."""

    def _started(self) -> None:  # noqa: B027 - there may be nothing
        """What else is done once it runs."""

    def _ended(self) -> None:  # noqa: B027 - as above
        """What else ends with it."""

    def _start_on(self, instance: ClientInstance) -> None:
        try:
            self._instance, self._admin = instance, QueueAdmin(instance)
            self._offsets = self._active.offset_store or self._default_offsets(instance)
            self._rebalance = self._make_rebalance(instance, self._offsets)
            self._rebalance.subscriptions = self._subscriptions
            self._offsets.load()
            instance.register_consumer(self.group, self)
        except BaseException:
            instance.release()
            raise
        self._pid = os.getpid()
        try:
            instance.start()
        except BaseException:
            instance.unregister_consumer(self.group)
            instance.release()
            raise
        self._state = ServiceState.RUNNING

    def _default_offsets(self, instance: ClientInstance) -> OffsetStore:
        if self.message_model == "BROADCASTING":
            return LocalFileOffsetStore(self._config.offset_dir(), instance.client_id, self.group)
        return RemoteBrokerOffsetStore(instance, self.group)

    def _check_running(self) -> None:
        """Source: `DefaultMQPullConsumerImpl.isRunning`."""
        if self._state is not ServiceState.RUNNING:
            raise self._not_running()
        self._check_process()

    def _check_process(self) -> None:
        if os.getpid() != self._pid and self.is_running:
            raise ForkError(
                f"this consumer was started in process {self._pid}, and is used in a fork of the process: "
                "make another one here"
            )

    def _not_running(self) -> ClientError:
        return ClientError(
            f"The consumer is not in running status, {self._state}",
            next_step="start it once, by start() or with; after shutdown() make another one",
        )

    def _wrapped(self, queue: MessageQueue) -> MessageQueue:
        """A queue as brokers know it."""
        namespace = self._config.namespace
        return replace(queue, topic=wrap(namespace, queue.topic)) if namespace else queue

    def _shown(self, queue: MessageQueue) -> MessageQueue:
        """A queue as its user knows it."""
        namespace = self._config.namespace
        return replace(queue, topic=unwrap(namespace, queue.topic)) if namespace else queue
