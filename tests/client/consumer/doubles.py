"""An instance, brokers and a consumer's rebalance of which a test knows what they are told and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from rmqfast.client.consumer import PullRequest, Rebalance
from rmqfast.client.consumer.strategies import AllocateMessageQueueAveragely, AllocateMessageQueueStrategy
from rmqfast.client.instance import ClientInstance, FoundBroker
from rmqfast.client.instance.members import MessageModel
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.subscription_data import SubscriptionData


class FakeApi:
    """Brokers: what they are asked is noted, what they answer is set; an exception as an answer is raised."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.offsets: dict[MessageQueue, int | Exception | None] = {}
        self.update_error: Exception | None = None
        self.locked_by_others: set[MessageQueue] = set()
        self.lock_error: Exception | None = None

    def query_consumer_offset(self, address: str, group: str, queue: MessageQueue, *, timeout: float) -> int | None:
        self.asked.append(("query", address, group, queue, timeout))
        answer = self.offsets.get(queue)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def update_consumer_offset(
        self, address: str, group: str, queue: MessageQueue, offset: int, *, oneway: bool, timeout: float
    ) -> None:
        self.asked.append(("update", address, group, queue, offset, oneway, timeout))
        if self.update_error is not None:
            raise self.update_error

    def lock_batch(
        self, address: str, group: str, client_id: str, queues: Iterable[MessageQueue], *, timeout: float
    ) -> set[MessageQueue]:
        self.asked.append(("lock", address, group, client_id, frozenset(queues), timeout))
        if self.lock_error is not None:
            raise self.lock_error
        return set(queues) - self.locked_by_others

    def unlock_batch(
        self, address: str, group: str, client_id: str, queues: Iterable[MessageQueue], *, oneway: bool, timeout: float
    ) -> None:
        self.asked.append(("unlock", address, group, client_id, frozenset(queues), oneway, timeout))
        if self.lock_error is not None:
            raise self.lock_error


class FakeInstance:
    """A client instance without threads and sockets."""

    def __init__(self, client_id: str = "c1", brokers: Mapping[str, Mapping[int, str]] | None = None) -> None:
        self.client_id, self.api, self.routes = client_id, FakeApi(), self
        self.brokers = {name: dict(of) for name, of in (brokers or {"b": {0: "b:0"}}).items()}
        self.members: list[str] | None = [client_id]
        self.on_update_route: Callable[[], None] = lambda: None
        self.updated: list[str] = []

    def publish_address(self, broker_name: str) -> str | None:
        return self.brokers.get(broker_name, {}).get(0)

    def subscribe_address(self, broker_name: str, broker_id: int = 0, *, only_this: bool = False) -> FoundBroker | None:
        addresses = self.brokers.get(broker_name, {})
        if broker_id in addresses:
            return FoundBroker(addresses[broker_id], broker_id != 0, 0)
        if only_this or not addresses:
            return None
        other = min(addresses)
        return FoundBroker(addresses[other], other != 0, 0)

    def update_route(self, topic: str) -> bool:
        self.updated.append(topic)
        self.on_update_route()
        return True

    def find_consumer_ids(self, topic: str, group: str) -> list[str] | None:
        return None if self.members is None else list(self.members)

    @property
    def as_instance(self) -> ClientInstance:
        """What those expect that are given one."""
        return cast(ClientInstance, self)


class FakeProcessQueue:
    """Messages of a queue that wait: none."""

    def __init__(self) -> None:
        self.is_dropped = self.is_locked = self.is_expired = False
        self.last_lock = 0.0

    def is_pull_expired(self) -> bool:
        return self.is_expired


class FakeRebalance(Rebalance[FakeProcessQueue]):
    """A rebalance that notes what becomes of queues."""

    def __init__(
        self,
        instance: FakeInstance,
        offset_store: Any,
        *,
        message_model: MessageModel = "CLUSTERING",
        strategy: AllocateMessageQueueStrategy | None = None,
    ) -> None:
        strategy = strategy or AllocateMessageQueueAveragely()
        super().__init__(instance.as_instance, "g", message_model, strategy, offset_store)
        self.may_remove = True
        self.begin: Callable[[MessageQueue], int] = lambda _: 0
        self.removed: list[MessageQueue] = []
        self.dispatched: list[list[PullRequest[FakeProcessQueue]]] = []
        self.changes: list[tuple[str, frozenset[MessageQueue], frozenset[MessageQueue]]] = []

    def new_process_queue(self, queue: MessageQueue) -> FakeProcessQueue:
        return FakeProcessQueue()

    def remove_unnecessary(self, queue: MessageQueue, process_queue: FakeProcessQueue) -> bool:
        assert process_queue.is_dropped, "nobody may go on with what is stored now"
        self.removed.append(queue)
        return self.may_remove

    def compute_pull_from_where(self, queue: MessageQueue) -> int:
        return self.begin(queue)

    def dispatch(self, requests: Sequence[PullRequest[FakeProcessQueue]]) -> None:
        self.dispatched.append(list(requests))

    def message_queue_changed(
        self, topic: str, all_queues: frozenset[MessageQueue], mine: frozenset[MessageQueue]
    ) -> None:
        self.changes.append((topic, all_queues, mine))

    def subscribed(self, *queues: MessageQueue) -> None:
        """These are all queues of the topics subscribed to."""
        for topic in {queue.topic for queue in queues}:
            self.subscriptions[topic] = SubscriptionData(topic=topic, sub_version=1)
            self.subscribe_info[topic] = frozenset(queue for queue in queues if queue.topic == topic)
