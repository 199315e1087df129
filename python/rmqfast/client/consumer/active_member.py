"""The inner part of consumers that pull. A client instance calls it.

Source: RocketMQ's `DefaultMQPullConsumer`, `DefaultLitePullConsumer`, `DefaultMQPullConsumerImpl`,
`DefaultLitePullConsumerImpl`, `MQClientInstance`.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from rmqfast.arguments import check_fields
from rmqfast.client.consumer.offset_store import LocalFileOffsetStore, OffsetStore, RemoteBrokerOffsetStore
from rmqfast.client.consumer.queue_admin import QueueAdmin
from rmqfast.client.consumer.rebalance import OwnedQueue, PullRequest, Rebalance
from rmqfast.client.consumer.strategies import AllocateMessageQueueAveragely, AllocateMessageQueueStrategy
from rmqfast.client.instance import ClientConfig, ClientInstance, MessageModel, ServiceState
from rmqfast.client.instance.namespaces import unwrap, wrap
from rmqfast.client.instance.validators import check_consumer_group
from rmqfast.errors import ArgumentError, ClientError, ForkError, ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.message import MessageQueue
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

#: Called with the topic, all its queues, and the queues that this member has now.
MessageQueueListener: TypeAlias = Callable[[str, frozenset[MessageQueue], frozenset[MessageQueue]], object]


@dataclass(frozen=True, kw_only=True, slots=True)
class ActiveOptions:
    """Options that pull and lite pull consumers share. Times are in seconds.

    Attributes:
        message_model: `CLUSTERING`: members share the messages. `BROADCASTING`: each member gets all messages.
        strategy: Distributes queues among members.
        offset_store: Stores the offsets. Default: the brokers, or a local file with `BROADCASTING`.
        broker_suspend: Longest time that a broker holds a pull without messages (Java's `brokerSuspendMaxTimeMillis`).
        suspend_timeout: Longest wait for the answer of such a pull (Java's `consumerTimeoutMillisWhenSuspend`).
        pull_timeout: Longest wait for other pulls (Java's `consumerPullTimeoutMillis`).
        message_queue_listener: Called when this member gains or loses queues; for a pull consumer, of its registered
            topics.

    Raises:
        ArgumentError: A number is out of range, or the message model is unknown.
        ClientError: `suspend_timeout` is shorter than `broker_suspend`.
    """

    message_model: MessageModel = "CLUSTERING"
    strategy: AllocateMessageQueueStrategy = field(default_factory=AllocateMessageQueueAveragely)
    offset_store: OffsetStore | None = None
    broker_suspend: float = 20.0
    suspend_timeout: float = 30.0
    pull_timeout: float = 10.0
    message_queue_listener: MessageQueueListener | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.message_model not in get_args(MessageModel):
            raise ArgumentError(f"message_model: expected one of {get_args(MessageModel)}, got {self.message_model!r}")
        for name in ("broker_suspend", "suspend_timeout", "pull_timeout"):
            check_range(name, getattr(self, name), 0.001, 86_400.0)
        if self.suspend_timeout < self.broker_suspend:
            raise ClientError(
                "Long polling mode, the consumer consumerTimeoutMillisWhenSuspend must greater than "
                "brokerSuspendMaxTimeMillis",
                next_step=f"suspend_timeout is {self.suspend_timeout} s, broker_suspend {self.broker_suspend} s",
            )

    def as_properties(self) -> dict[str, str]:
        """Returns the options as strings under Java's names, for administrators."""
        names: list[str] = list(self.__dataclass_fields__)
        return {name: _text(getattr(self, name)) for name in names if getattr(self, name) is not None}


def check_range(name: str, value: float, least: float, most: float) -> None:
    number: object = value
    if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number <= most:
        raise ArgumentError(f"{name}: expected {least} to {most}, got {value!r}")


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else type(value).__name__


_log = logger_of(__name__)


class ActiveRebalance(Rebalance[OwnedQueue]):
    """The rebalance of a consumer that pulls. Its queues need no process queues."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        options: ActiveOptions,
        offset_store: OffsetStore,
        on_changed: MessageQueueListener,
    ) -> None:
        super().__init__(instance, group, options.message_model, options.strategy, offset_store)
        self._on_changed = on_changed

    def new_process_queue(self, _queue: MessageQueue) -> OwnedQueue:
        return OwnedQueue()

    def remove_unnecessary(self, queue: MessageQueue, _process_queue: OwnedQueue) -> bool:
        self.offset_store.persist(queue)
        self.offset_store.remove_offset(queue)
        return True

    def compute_pull_from_where(self, _queue: MessageQueue) -> int:
        # the application chooses its own start offset
        return 0

    def dispatch(self, requests: Sequence[PullRequest[OwnedQueue]]) -> None: ...

    def message_queue_changed(
        self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]
    ) -> None:
        self._on_changed(topic, all_queues, mine)


class ActiveMember(ABC):
    """The inner part of a consumer that pulls, which its client instance knows as a `ConsumerInner`.

    Attributes:
        wanted: Subscriptions by topic whose queues the rebalance distributes.
        pid: Id of the process that created or started it.
    """

    instance: ClientInstance
    admin: QueueAdmin
    offsets: OffsetStore
    rebalance: ActiveRebalance

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
        return wrap(self.config.namespace, self._bare_group)

    @property
    def consume_type(self) -> Literal["CONSUME_ACTIVELY"]:
        return "CONSUME_ACTIVELY"

    @property
    def message_model(self) -> MessageModel:
        return self._active.message_model

    @property
    def consume_from_where(self) -> str:
        return "CONSUME_FROM_LAST_OFFSET"

    @property
    def is_unit_mode(self) -> bool:
        return self.config.is_unit_mode

    @property
    def is_running(self) -> bool:
        return self.state is ServiceState.RUNNING

    def start(self) -> None:
        with self.lock:
            if self.state is not ServiceState.CREATE_JUST:
                raise ClientError(
                    f"The PullConsumer service state not OK, maybe started once, {self.state}",
                    next_step="a consumer is started once, by start() or with; after shutdown() make another one",
                )
            check_consumer_group(self._bare_group)
            shared = self.message_model == "CLUSTERING"
            # a broadcasting consumer keeps its instance name, because the client id is part of its offset file's path
            config = self.config.with_pid_instance_name() if shared else self.config
            self._start_on(ClientInstance.of(config, config.client_id(is_stream=True)))
        self._began = int(time.time() * 1000)
        self._on_start()
        _log.info("the consumer [%s] start OK", self.group)

    def shutdown(self) -> None:
        if os.getpid() != self.pid:
            # a fork has none of the threads, and may have inherited locks that nobody releases
            return
        with self.lock:
            if self.state is not ServiceState.RUNNING:
                return
            # before the state changes: offsets are only stored while it runs
            self.persist_consumer_offset()
            self.state = ServiceState.SHUTDOWN_ALREADY
        self._on_shutdown()
        self.instance.unregister_consumer(self.group)
        self.instance.release()
        self.rebalance.drop_all()
        _log.info("the consumer [%s] shutdown OK", self.group)

    @abstractmethod
    def subscriptions(self) -> Sequence[SubscriptionData]: ...

    def do_rebalance(self) -> None:
        if self.is_running:
            self.rebalance.do_rebalance()

    def persist_consumer_offset(self) -> None:
        if self.is_running:
            self.offsets.persist_all(self._owned_queues())

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        if topic in self.wanted:
            self.rebalance.subscribe_info[topic] = frozenset(queues)

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        return topic in self.wanted and topic not in self.rebalance.subscribe_info

    def running_info(self) -> dict[str, Any]:
        properties = {
            "allocateMessageQueueStrategy": type(self._active.strategy).__name__,
            "consumerGroup": self.group,
            "PROP_CONSUMER_START_TIMESTAMP": str(self._began),
        }
        return {
            "mqTable": {},
            "properties": {**self._active.as_properties(), **properties},
            "statusTable": {},
            "subscriptionSet": [subscription.to_json() for subscription in self.subscriptions()],
        }

    def reset_offset(self, topic: str, _offsets: Mapping[MessageQueue, int]) -> None:
        """Does nothing. As in Java, administrators cannot reset the offsets of consumers that pull."""
        _log.warning("offsets of group %s and topic %s are not reset: the group pulls, use seek", self.group, topic)

    def consume_message_directly(self, _message: Any, _broker_name: str | None) -> dict[str, Any]:
        """Raises an error, since consumers that pull have no listener."""
        remark = f"The Consumer Group <{self.group}> not exist in this consumer"
        raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        return self.offsets.clone(topic)

    def check_running(self) -> None:
        if self.state is not ServiceState.RUNNING:
            raise self.not_running()
        self.check_process()

    def check_process(self) -> None:
        if os.getpid() != self.pid and self.is_running:
            raise ForkError(
                f"this consumer was started in process {self.pid}, and is used in a fork of the process: "
                "make another one here"
            )

    def not_running(self) -> ClientError:
        return ClientError(
            f"The consumer is not in running status, {self.state}",
            next_step="start it once, by start() or with; after shutdown() make another one",
        )

    def with_namespace(self, queue: MessageQueue) -> MessageQueue:
        """Returns the queue with the namespace in its topic."""
        namespace = self.config.namespace
        return replace(queue, topic=wrap(namespace, queue.topic)) if namespace else queue

    def without_namespace(self, queue: MessageQueue) -> MessageQueue:
        namespace = self.config.namespace
        return replace(queue, topic=unwrap(namespace, queue.topic)) if namespace else queue

    def _make_rebalance(self, instance: ClientInstance, offsets: OffsetStore) -> ActiveRebalance:
        return ActiveRebalance(instance, self.group, self._active, offsets, self._on_queues_changed)

    def _owned_queues(self) -> Iterable[MessageQueue]:
        return self.rebalance.process_queues.copy()

    def _on_start(self) -> None:  # noqa: B027 - an optional hook
        ...

    def _on_shutdown(self) -> None:  # noqa: B027 - as above
        ...

    def _on_queues_changed(
        self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]
    ) -> None:
        listener = self._active.message_queue_listener
        if listener is not None:
            bare = (frozenset(map(self.without_namespace, queues)) for queues in (all_queues, mine))
            try:
                listener(unwrap(self.config.namespace, topic), *bare)
            except Exception:  # noqa: BLE001 - application code must not end a shared thread
                _log.exception("group %s: messageQueueChanged exception", self.group)

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
