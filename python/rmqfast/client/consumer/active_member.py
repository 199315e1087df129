"""A consumer that pulls by itself, while it runs: a member of its group, for its client instance.

Source: `DefaultMQPullConsumerImpl`, `DefaultLitePullConsumerImpl`.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from rmqfast.client.consumer.active_options import ActiveOptions
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


class ActiveMember(ABC):
    """The running side of a consumer that pulls: a `ConsumerInner` of its client instance.

    Attributes:
        wanted: What the rebalance looks at, by topic.
        pid: The process that started it, or made it.
    """

    instance: ClientInstance
    admin: QueueAdmin
    offsets: OffsetStore
    rebalance: Rebalance[Any]

    def __init__(self, group: str, config: ClientConfig, options: ActiveOptions) -> None:
        self.config: Final = config
        self._bare_group, self._active = group, options
        self.wanted: Final[dict[str, SubscriptionData]] = {}
        self.state: ServiceState = ServiceState.CREATE_JUST
        self.lock: Final = QuietLock(reentrant=True)
        self.pid: int = os.getpid()
        self._began = 0

    @property
    def group(self) -> str:
        """The consumer group, with its namespace."""
        return wrap(self.config.namespace, self._bare_group)

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
        """The place in a queue at which a new group begins."""
        return "CONSUME_FROM_LAST_OFFSET"

    @property
    def is_unit_mode(self) -> bool:
        """Whether it is of a unit."""
        return self.config.is_unit_mode

    @property
    def is_running(self) -> bool:
        """Whether it was started and did not end."""
        return self.state is ServiceState.RUNNING

    def start(self) -> None:
        """Starts it: brokers will know it.

        Raises:
            ClientError: As `ActiveConsumer.start`.

        Source: `DefaultMQPullConsumerImpl.start`, `DefaultLitePullConsumerImpl.start`.
        """
        with self.lock:
            if self.state is not ServiceState.CREATE_JUST:
                raise ClientError(
                    f"The PullConsumer service state not OK, maybe started once, {self.state}",
                    next_step="a consumer is started once, by start() or with; after shutdown() make another one",
                )
            check_consumer_group(self._bare_group)
            shared = self.message_model == "CLUSTERING"
            # a broadcast keeps its name: the client id stands in the path of its offsets
            config = self.config.with_pid_instance_name() if shared else self.config
            self._start_on(ClientInstance.of(config, config.client_id(is_stream=True)))
        self._began = int(time.time() * 1000)
        self._started()
        _log.info("the consumer [%s] start OK", self.group)

    def shutdown(self) -> None:
        """Ends it: offsets are stored, brokers are told. Once more is nothing.

        Source: `DefaultMQPullConsumerImpl.shutdown`, `DefaultLitePullConsumerImpl.shutdown`.
        """
        if os.getpid() != self.pid:
            return  # a fork of the process has none of its threads, and perhaps its locks for ever
        with self.lock:
            if self.state is not ServiceState.RUNNING:
                return
            # while it counts as running: afterwards nothing is stored
            self.persist_consumer_offset()
            self.state = ServiceState.SHUTDOWN_ALREADY
        self._ended()
        self.instance.unregister_consumer(self.group)
        self.instance.release()
        self.rebalance.drop_all()
        _log.info("the consumer [%s] shutdown OK", self.group)

    @abstractmethod
    def subscriptions(self) -> Sequence[SubscriptionData]:
        """The subscriptions that heartbeats tell."""

    def do_rebalance(self) -> None:
        """Shares the queues of its topics out anew."""
        if self.is_running:
            self.rebalance.do_rebalance()

    def persist_consumer_offset(self) -> None:
        """Stores the offsets of the queues that it has."""
        if self.is_running:
            self.offsets.persist_all(self._owned_queues())

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        """Takes the queues of a topic that it wants."""
        if topic in self.wanted:
            self.rebalance.subscribe_info[topic] = frozenset(queues)

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        """Whether it wants a topic and knows no queues of it."""
        return topic in self.wanted and topic not in self.rebalance.subscribe_info

    def running_info(self) -> dict[str, Any]:
        """The state that administrators are shown.

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
        return self.offsets.clone(topic)

    def check_running(self) -> None:
        """Whether it may be used.

        Raises:
            ClientError: It was not started, or has ended.
            ForkError: It was started in another process.

        Source: `DefaultMQPullConsumerImpl.isRunning`.
        """
        if self.state is not ServiceState.RUNNING:
            raise self.not_running()
        self.check_process()

    def check_process(self) -> None:
        """Whether it is used in the process that started it.

        Raises:
            ForkError: It runs in another one.
        """
        if os.getpid() != self.pid and self.is_running:
            raise ForkError(
                f"this consumer was started in process {self.pid}, and is used in a fork of the process: "
                "make another one here"
            )

    def not_running(self) -> ClientError:
        """The error of a consumer that was not started, or has ended."""
        return ClientError(
            f"The consumer is not in running status, {self.state}",
            next_step="start it once, by start() or with; after shutdown() make another one",
        )

    def wrapped(self, queue: MessageQueue) -> MessageQueue:
        """A queue as brokers know it."""
        namespace = self.config.namespace
        return replace(queue, topic=wrap(namespace, queue.topic)) if namespace else queue

    def shown(self, queue: MessageQueue) -> MessageQueue:
        """A queue as its user knows it."""
        namespace = self.config.namespace
        return replace(queue, topic=unwrap(namespace, queue.topic)) if namespace else queue

    @abstractmethod
    def _make_rebalance(self, instance: ClientInstance, offsets: OffsetStore) -> Rebalance[Any]:
        """The rebalance that shares queues out."""

    @abstractmethod
    def _owned_queues(self) -> Iterable[MessageQueue]:
        """The queues whose offsets are stored."""

    def _started(self) -> None:  # noqa: B027 - there may be nothing
        """Does the rest of a start, once it runs."""

    def _ended(self) -> None:  # noqa: B027 - as above
        """Ends the rest, once it counts as ended."""

    def _start_on(self, instance: ClientInstance) -> None:
        try:
            self.instance, self.admin = instance, QueueAdmin(instance)
            self.offsets = self._active.offset_store or self._default_offsets(instance)
            self.rebalance = self._make_rebalance(instance, self.offsets)
            self.rebalance.subscriptions = self.wanted
            self.offsets.load()
            instance.register_consumer(self.group, self)
        except BaseException:
            instance.release()
            raise
        self.pid = os.getpid()
        try:
            instance.start()
        except BaseException:
            instance.unregister_consumer(self.group)
            instance.release()
            raise
        self.state = ServiceState.RUNNING

    def _default_offsets(self, instance: ClientInstance) -> OffsetStore:
        if self.message_model == "BROADCASTING":
            return LocalFileOffsetStore(self.config.offset_dir(), instance.client_id, self.group)
        return RemoteBrokerOffsetStore(instance, self.group)
