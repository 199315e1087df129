"""Has each queue pulled from the broker that it should be pulled from.

Source: `DefaultLitePullConsumerImpl.startPullTask`, `PullTaskImpl`, `PullAPIWrapper.recalculatePullFromWhichNode`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from rmqfast.client.consumer.pull_api import VERSION_WITH_SQL92
from rmqfast.client.instance import FoundBroker
from rmqfast.client.lite_pull.assigned_queues import AssignedQueue, AssignedQueues
from rmqfast.client.lite_pull.broker_puller import BrokerPuller, NativePuller
from rmqfast.client.lite_pull.task_threads import TaskThreads
from rmqfast.errors import ClientError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.subscription_data import SubscriptionData

_log = logging.getLogger(__name__)

_WITHOUT_OFFSET = 3.0
_WITHOUT_BROKER = 1.0

#: Opens what pulls from an address, for a broker's name.
OpenPuller: TypeAlias = Callable[[str, str], NativePuller]


@dataclass(frozen=True, slots=True)
class PullContext:
    """What pulls need to know.

    Attributes:
        cache: Where what comes waits.
        threads: Do what is due.
        subscription: What is wanted of a topic; `None` where nothing is any more.
        begin: Where a queue begins of which no offset is known; negative where that cannot be told now.
        find: The broker of a name and an id.
        update_route: Asks where a topic is.
        open: Opens what pulls.
    """

    cache: AssignedQueues
    threads: TaskThreads
    subscription: Callable[[str], SubscriptionData | None]
    begin: Callable[[MessageQueue], int]
    find: Callable[[str, int], FoundBroker | None]
    update_route: Callable[[str], bool]
    open: OpenPuller


class Pullers:
    """All pulls of a consumer.

    Args:
        context: What they need to know.
    """

    def __init__(self, context: PullContext) -> None:
        self._of = context
        self._lock = threading.Lock()
        self._pullers: dict[tuple[str, str], BrokerPuller] = {}
        self._where: dict[MessageQueue, tuple[str, str]] = {}
        self._suggested: dict[MessageQueue, int] = {}
        self._is_closed = False

    def start(self, queues: Iterable[AssignedQueue]) -> None:
        """Has queues pulled, from where they are; once more after a seek."""
        for assigned in queues:
            self._later(0.0, assigned, assigned.epoch)
        self.see_to()  # a seek threw away what waited

    def stop(self, queues: Iterable[AssignedQueue]) -> None:
        """Has queues pulled no more."""
        for assigned in queues:
            with self._lock:
                puller = self._pullers.get(self._where.pop(assigned.queue, ("", "")))
            if puller is not None:
                puller.end(assigned.queue)
        self.see_to()

    def see_to(self, queues: list[AssignedQueue] | None = None) -> None:
        """Looks whether queues may be asked for again, or no more.

        Args:
            queues: Which; all of which nothing is asked unless given.
        """
        for puller in tuple(self._pullers.values()):
            puller.see_to(queues)

    def close(self, timeout: float = 0.0) -> None:
        """Pulls no more.

        Args:
            timeout: How long to wait for each thread, in seconds.
        """
        with self._lock:
            self._is_closed = True
            pullers, self._pullers = list(self._pullers.values()), {}
        for puller in pullers:
            puller.close(timeout)

    def _later(self, delay: float, assigned: AssignedQueue, epoch: int) -> None:
        self._of.threads.later(delay, lambda: self._begin(assigned, epoch))

    def _begin(self, assigned: AssignedQueue, epoch: int) -> None:
        if not self._of.cache.is_current(assigned, epoch):
            return
        subscription = self._of.subscription(assigned.queue.topic)
        if subscription is None:
            return
        if assigned.pull_offset < 0 and not self._look_up(assigned, epoch):
            self._later(_WITHOUT_OFFSET, assigned, epoch)
            return
        try:
            broker = self._broker_of(assigned.queue, subscription)
        except RmqError as error:
            _log.warning("%s cannot be pulled now, and is tried again: %s", assigned.queue, error)
            self._later(_WITHOUT_BROKER, assigned, epoch)
            return
        self._move(assigned, epoch, broker, subscription)

    def _look_up(self, assigned: AssignedQueue, epoch: int) -> bool:
        """Source: `DefaultLitePullConsumerImpl.nextPullOffset`."""
        try:
            offset = self._of.begin(assigned.queue)
        except RmqError as error:
            _log.warning("nobody can tell where to begin in %s: %s", assigned.queue, error)
            return False
        return offset >= 0 and self._of.cache.advance(assigned, epoch, offset)

    def _broker_of(self, queue: MessageQueue, subscription: SubscriptionData) -> FoundBroker:
        """Source: `PullAPIWrapper.pullKernelImpl`."""
        broker_id = self._suggested.get(queue, MASTER_ID)
        found = self._of.find(queue.broker_name, broker_id)
        if found is None:
            self._of.update_route(queue.topic)
            found = self._of.find(queue.broker_name, broker_id)
        if found is None:
            raise ClientError(f"The broker[{queue.broker_name}] not exist", next_step="is it registered and running?")
        if not subscription.is_tag_type and found.version < VERSION_WITH_SQL92:
            raise ClientError(
                f"The broker[{queue.broker_name}, {found.version}] does not upgrade to support for filter message by "
                f"{subscription.expression_type}",
                next_step="its version is that of its last answer to a heartbeat, 0 where there was none",
            )
        return found

    def _move(self, assigned: AssignedQueue, epoch: int, broker: FoundBroker, subscription: SubscriptionData) -> None:
        """Has a queue pulled from one broker, and from no other."""
        queue, place = assigned.queue, (assigned.queue.broker_name, broker.address)
        with self._lock:
            if self._is_closed:
                return
            before = self._where.get(queue)
            puller = self._pullers.get(place)
            if puller is None:
                puller = self._pullers[place] = self._opened(place)
            self._where[queue] = place
            if before is not None and before != place and before in self._pullers:
                self._pullers[before].end(queue)
            # what came until now has moved the offset on: nothing comes between
            if not puller.begin(assigned, epoch, subscription):
                self._where.pop(queue, None)

    def _opened(self, place: tuple[str, str]) -> BrokerPuller:
        broker_name, address = place
        made = BrokerPuller(
            self._of.open(address, broker_name),
            self._of.cache,
            self._suggest,
            lambda: self._of.threads.later(_WITHOUT_BROKER, lambda: self._look_after(place)),
        )
        made.start()
        return made

    def _suggest(self, assigned: AssignedQueue, broker_id: int) -> None:
        """A broker says who is to be asked for a queue."""
        queue = assigned.queue
        if self._suggested.get(queue, MASTER_ID) == broker_id:
            return
        self._suggested[queue] = broker_id
        found = self._of.find(queue.broker_name, broker_id)
        if found is not None and self._where.get(queue) != (queue.broker_name, found.address):
            _log.info("%s is pulled from broker %d, %s", queue, broker_id, found.address)
            self._later(0.0, assigned, assigned.epoch)

    def _look_after(self, place: tuple[str, str]) -> None:
        """Whether the queues of a broker that is lost are to be had elsewhere by now."""
        with self._lock:
            queues = [queue for queue, where in self._where.items() if where == place]
        for topic in {queue.topic for queue in queues}:
            try:
                self._of.update_route(topic)
            except RmqError as error:
                _log.debug("the route of topic %s is not updated: %s", topic, error)
        for queue in queues:
            found = self._of.find(queue.broker_name, self._suggested.get(queue, MASTER_ID))
            assigned = self._of.cache.get(queue)
            if found is not None and assigned is not None and found.address != place[1]:
                self._later(0.0, assigned, assigned.epoch)
