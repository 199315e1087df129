"""Assigns queues, with offset and broker, to the native puller, which does the pulls and flow control.

Source: RocketMQ's `PullAPIWrapper`, `PullMessageService`, `AssignedMessageQueue`, `DefaultLitePullConsumerImpl`,
`MQClientInstance`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from rmqfast._native import Fetched, FlowControl, MessageView, Puller, PullerEvent
from rmqfast.client.consumer.offset_store import NO_OFFSET
from rmqfast.client.instance import ClientErrorCode, FoundBroker
from rmqfast.client.instance.namespaces import RETRY_PREFIX, unwrap
from rmqfast.errors import ChannelClosedError, ClientError, RmqError, plain_remark
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.threads import new_lock

#: The first release whose brokers filter by SQL92: `V4_1_0_SNAPSHOT`.
VERSION_WITH_SQL92 = 232


class BrokerChoice:
    """Chooses the master, or the slave that the last answer has suggested."""

    def __init__(self, find: Callable[[str, int], FoundBroker | None], update_route: Callable[[str], object]) -> None:
        self._find = find
        self.update_route: Final = update_route
        self._suggested: dict[MessageQueue, int] = {}

    def suggest(self, queue: MessageQueue, broker_id: int) -> None:
        self._suggested[queue] = broker_id

    def current(self, queue: MessageQueue) -> FoundBroker | None:
        return self._find(queue.broker_name, self._suggested.get(queue, MASTER_ID))

    def broker_of(self, queue: MessageQueue, subscription: SubscriptionData) -> FoundBroker:
        """Returns the broker to ask. Updates the route if the broker's address is unknown."""
        broker = self.current(queue)
        if broker is None:
            self.update_route(queue.topic)
            broker = self.current(queue)
        if broker is None:
            raise ClientError(
                f"The broker[{queue.broker_name}] not exist",
                response_code=ClientErrorCode.BROKER_NOT_EXIST_EXCEPTION,
                next_step=f"no broker of that name stands in the route of topic {queue.topic}: is it running?",
            )
        if not subscription.is_tag_type and broker.version < VERSION_WITH_SQL92:
            raise ClientError(
                f"The broker[{queue.broker_name}, {broker.version}] does not upgrade to support for filter message by "
                f"{subscription.expression_type}",
                next_step="its version is that of its last answer to a heartbeat, 0 where there was none",
            )
        return broker


_log = logger_of(__name__)

#: Seconds until the next attempt to look up a queue's start offset and its broker.
WITHOUT_OFFSET, WITHOUT_BROKER = 3.0, 1.0

P = TypeVar("P")


#: Calls a function once, on another thread, after some seconds: `Scheduler.later`.
RunLater: TypeAlias = Callable[[float, Callable[[], None]], object]


@dataclass(eq=False, slots=True)
class PulledQueue(Generic[P]):
    """A pulled queue with its position. A seek replaces the object, so that work with the old object has no effect.

    Attributes:
        queue: The queue, with the namespace in its topic.
        process_queue: The queue's buffer of messages.
        offset: Offset at which pulls start; negative if it must be looked up.
        commit_offset: Offset that pulls commit for the group; 0 if unknown.
        consume_offset: Offset up to which the application got messages; -1 if it got none.
        is_paused: Whether pulls are paused.
        epoch: The native puller's number of the assignment; 0 before it is pulled.
        address: Address of the broker.
        broker_id: Id of the broker that answers suggest; 0 is the master.
        last_store_timestamp: Store time of the last message in milliseconds since 1970; None before the first message.
    """

    queue: MessageQueue
    process_queue: P
    offset: int = NO_OFFSET
    commit_offset: int = 0
    consume_offset: int = NO_OFFSET
    is_paused: bool = False
    epoch: int = 0
    address: str = ""
    broker_id: int = MASTER_ID
    last_store_timestamp: int | None = None


class PulledQueues(Generic[P]):
    """The queues of a consumer that the native puller pulls. Threads may share this object.

    Attributes:
        is_closed: Whether pulling has ended.
        threshold: Messages and bytes of the last `set_threshold`; None before the first call.
    """

    def __init__(
        self,
        run_later: RunLater,
        *,
        subscription: Callable[[str], SubscriptionData | None],
        begin: Callable[[MessageQueue], int],
    ) -> None:
        self._run_later, self._subscription, self._begin_of = run_later, subscription, begin
        # held while the puller and this table change together, so that answers find their queue
        self._lock = new_lock()
        self._queues: dict[MessageQueue, PulledQueue[P]] = {}
        self._puller: Puller | None = None
        self._is_suspended = False
        self.is_closed: bool = False
        self.threshold: tuple[int, int] | None = None

    def open(self, puller: Puller, brokers: BrokerChoice) -> None:
        with self._lock:
            self._puller, self._brokers = puller, brokers
            # queues that were assigned before the start
            begun = list(self._queues.values())
        for pulled in begun:
            self._later(0.0, pulled)

    def queues(self) -> list[PulledQueue[P]]:
        with self._lock:
            return [self._queues[queue] for queue in sorted(self._queues)]

    def get(self, queue: MessageQueue) -> PulledQueue[P] | None:
        return self._queues.get(queue)

    @property
    def backlog(self) -> int:
        return self._puller.held[0] if self._puller is not None else 0

    @property
    def is_handled(self) -> bool:
        return self._puller is None or self._puller.is_handled

    def start(self, pulled: PulledQueue[P]) -> None:
        with self._lock:
            self._queues[pulled.queue] = pulled
            is_open = self._puller is not None
        if is_open:
            self._later(0.0, pulled)

    def stop(self, queues: Iterable[MessageQueue]) -> None:
        for queue in queues:
            with self._lock:
                if self._queues.pop(queue, None) is not None and self._puller is not None:
                    self._puller.remove(queue)

    def seek(self, queue: MessageQueue, offset: int) -> bool:
        with self._lock:
            before = self._queues.get(queue)
            if before is None:
                return False
            # a new object, so that answers to earlier pulls are recognised
            pulled = PulledQueue(queue, before.process_queue, offset, 0, offset, before.is_paused)
            self._queues[queue] = pulled
            # without an epoch the puller does not have the queue yet: `_begin` will assign it with the new offset
            epoch = None if self._puller is None else self._puller.seek(queue, offset)
            if epoch is not None:
                pulled.epoch, pulled.address = epoch, before.address
                return True
        self._later(0.0, pulled)
        return True

    def go_on_at(self, pulled: PulledQueue[P], offset: int) -> None:
        """Moves a queue to `offset` after OFFSET_ILLEGAL, unless the application has moved the queue meanwhile."""
        with self._lock:
            epoch = self._puller.seek(pulled.queue, offset) if self._puller and self._is_current(pulled) else None
            if epoch is not None:
                pulled.epoch = epoch

    def pause(self, queues: Iterable[MessageQueue], *, is_paused: bool) -> None:
        with self._lock:
            for queue in queues:
                pulled = self._queues.get(queue)
                if pulled is not None:
                    pulled.is_paused = is_paused
                    self._apply_pause(pulled)

    def suspend(self, *, is_suspended: bool) -> None:
        with self._lock:
            self._is_suspended = is_suspended
            for pulled in self._queues.values():
                self._apply_pause(pulled)

    def subscribe(self, subscription: SubscriptionData) -> None:
        if self._puller is not None:
            self._puller.subscribe(subscription.topic, **_filter_of(subscription))

    def set_threshold(self, messages: int, size: int) -> None:
        self.threshold = messages, size
        if self._puller is not None:
            self._puller.set_threshold(messages, size)

    def on_consumed(self, epoch: int, messages: int, size: int, position: int) -> None:
        if self._puller is not None:
            self._puller.done(epoch, messages, size, position)

    def give_back(self, fetched: Fetched) -> None:
        if self._puller is not None:
            self._puller.give_back(fetched)

    def take(self, timeout: float, *, max_items: int = 1) -> list[tuple[PulledQueue[P], Fetched]] | None:
        """Takes and returns answers. [] if all were outdated, None after the timeout or if the puller is closed."""
        try:
            items = self._puller.take(timeout, max_items=max_items) if self._puller else []
        except ChannelClosedError:
            return None
        taken = []
        for item in items:
            if not isinstance(item, Fetched):
                self._note(item)
            elif (pulled := self._accept(item)) is not None:
                taken.append((pulled, item))
        # an empty list: there were answers, but none is current
        return taken if items else None

    def close(self) -> None:
        with self._lock:
            self.is_closed = True
            self._queues.clear()
        if self._puller is not None:
            self._puller.close()

    def _accept(self, fetched: Fetched) -> PulledQueue[P] | None:
        with self._lock:
            pulled = self._queues.get(fetched.queue)
        # the answer to a pull before a seek, or before the queue was revoked
        if pulled is None or pulled.epoch != fetched.epoch:
            return None
        if fetched.status == "FAILED":
            # a retry topic may not exist yet: brokers create it at the group's heartbeat
            level = logging.DEBUG if pulled.queue.topic.startswith(RETRY_PREFIX) else logging.WARNING
            remark = plain_remark(fetched.remark)
            _log.log(level, "a pull of %s failed, and is tried again: %s", pulled.queue, remark)
            return None
        if len(fetched):
            pulled.last_store_timestamp = fetched.last_store_timestamp
        # a master suggests a slave if it would have to read from disk, and later takes the queue back
        if fetched.suggested_broker_id != pulled.broker_id:
            pulled.broker_id = fetched.suggested_broker_id
            self._brokers.suggest(pulled.queue, pulled.broker_id)
            self._run_later(0.0, lambda: self._move(pulled))
        return pulled

    def _note(self, item: PullerEvent | FlowControl) -> None:
        if isinstance(item, FlowControl):
            _log.warning(
                "%s: not pulled, there are too many messages that are not done: %d of %d bytes, a span of %d offsets; "
                "this has happened %d times",
                *(item.queue, item.messages, item.size, item.span, item.times),
            )
        elif item.is_connected:
            _log.debug("pulls are connected to %s", item.address)
        else:
            _log.warning("the connection of pulls is lost, and is tried again: %s", item.reason)
            self._run_later(WITHOUT_BROKER, lambda: self._follow(item.address))

    def _later(self, delay: float, pulled: PulledQueue[P]) -> None:
        self._run_later(delay, lambda: self._begin(pulled))

    def _is_current(self, pulled: PulledQueue[P]) -> bool:
        return self._queues.get(pulled.queue) is pulled

    def _begin(self, pulled: PulledQueue[P]) -> None:
        queue = pulled.queue
        subscription = self._subscription(queue.topic) if self._is_current(pulled) else None
        if subscription is None:
            return
        try:
            if pulled.offset < 0:
                # may ask a broker, so this runs without the lock
                pulled.offset = self._begin_of(queue)
        except RmqError as error:
            _log.warning("nobody can tell where to begin in %s: %s", queue, error)
        if pulled.offset < 0:
            self._later(WITHOUT_OFFSET, pulled)
            return
        try:
            broker = self._brokers.broker_of(queue, subscription)
        except RmqError as error:
            _log.warning("%s cannot be pulled now, and is tried again: %s", queue, error)
            self._later(WITHOUT_BROKER, pulled)
            return
        with self._lock:
            # the broker was looked up without the lock: a seek or a shutdown may have happened meanwhile
            if self._puller is None or not self._is_current(pulled):
                return
            try:
                pulled.epoch = self._puller.assign(
                    queue,
                    broker.address,
                    pulled.offset,
                    is_slave=broker.is_slave,
                    paused=pulled.is_paused or self._is_suspended,
                    commit_offset=pulled.commit_offset,
                    **_filter_of(subscription),
                )
            except ChannelClosedError:
                # the consumer is shutting down
                return
            pulled.address = broker.address

    def _apply_pause(self, pulled: PulledQueue[P]) -> None:
        if self._puller is not None:
            is_paused = pulled.is_paused or self._is_suspended
            (self._puller.pause if is_paused else self._puller.resume)(pulled.queue)

    def _move(self, pulled: PulledQueue[P]) -> None:
        broker = self._brokers.current(pulled.queue)
        with self._lock:
            # not assigned yet, or already there
            if broker is None or pulled.address in {"", broker.address}:
                return
            if self._puller is None or not self._is_current(pulled):
                return
            pulled.address = broker.address
            try:
                self._puller.move_to(pulled.queue, broker.address, is_slave=broker.is_slave)
            except ChannelClosedError:
                # the consumer is shutting down
                return
        _log.info("%s is pulled from %s", pulled.queue, broker.address)

    def _follow(self, address: str) -> None:
        queues = [pulled for pulled in self.queues() if pulled.address == address]
        for topic in {pulled.queue.topic for pulled in queues}:
            try:
                self._brokers.update_route(topic)
            except RmqError as error:
                _log.debug("the route of topic %s is not updated: %s", topic, error)
        for pulled in queues:
            self._move(pulled)


def _filter_of(subscription: SubscriptionData) -> dict[str, Any]:
    is_tag = subscription.is_tag_type
    return {
        "expression": subscription.sub_string,
        "expression_type": subscription.expression_type,
        "sub_version": subscription.sub_version,
        "tags": frozenset(subscription.tags_set) if is_tag and subscription.tags_set else None,
    }


def messages_of(fetched: Fetched, namespace: str) -> list[MessageView]:
    """Returns the messages of an answer. Their topics are without the namespace."""
    return fetched.messages_as(unwrap(namespace, fetched.queue.topic)) if namespace else fetched.messages
