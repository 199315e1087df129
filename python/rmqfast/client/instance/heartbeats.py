"""Sends heartbeats to brokers: regularly, and soon after a connection was lost.

Source: `MQClientInstance.prepareHeartbeatData`, `sendHeartbeatToAllBroker`.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping

from rmqfast.client.instance.api import ClientApi
from rmqfast.client.instance.members import ConsumerInner, Members
from rmqfast.client.instance.routes import RouteTable
from rmqfast.client.instance.scheduler import Scheduler
from rmqfast.errors import RemotingError, ResponseError
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.heartbeat_data import ConsumerData, HeartbeatData

_log = logging.getLogger(__name__)

#: Java's: a broker that does not answer must not hold up a shutdown for longer.
UNREGISTER_TIMEOUT = 3.0
FIRST_DELAY = 0.5


class Heartbeats:
    """Sends what a client instance is to its brokers, one heartbeat at a time.

    Args:
        client_id: The instance.
        members: Its consumers and producers.
        routes: Its brokers.
        api: What requests go out by.
        on_failed: Is told the address of a broker that did not answer.
    """

    def __init__(
        self,
        client_id: str,
        members: Members,
        routes: RouteTable,
        api: ClientApi,
        *,
        on_failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client_id, self._members, self._routes, self._api = client_id, members, routes, api
        self._on_failed = on_failed
        self._lock = threading.Lock()
        self._is_wanted_again = False

    def send(self, only: str | None = None) -> bool:
        """Sends a heartbeat; one at a time. Where one is being sent, who sends it sends another one behind it.

        Java leaves the second one out: a broker that was found meanwhile would not know of a group for half a minute.

        Args:
            only: The one address that it goes to, if it is a broker's that gets heartbeats at all.

        Returns:
            Whether all brokers took it; so it is where there is nothing to tell, or nobody.

        Source: `MQClientInstance.sendHeartbeatToAllBrokerWithLock`.
        """
        if not self._lock.acquire(blocking=False):
            self._is_wanted_again = True
            # who had it may have looked just before
            if not self._lock.acquire(blocking=False):
                return False
        try:
            self._is_wanted_again = False
            is_taken = self._send(only)
        finally:
            self._lock.release()
        return self.send() if self._is_wanted_again else is_taken

    def _send(self, only: str | None) -> bool:
        heartbeat = heartbeat_of(self._client_id, self._members)
        if not heartbeat.consumers and not heartbeat.producers:
            return True
        targets = targets_of(self._routes.brokers(), is_consumer=bool(heartbeat.consumers))
        taken = [self._send_to(*target, heartbeat) for target in targets if only in {None, target[1]}]
        return all(taken)

    def leave(self, *, consumer_group: str | None = None, producer_group: str | None = None) -> None:
        """Tells all brokers that this client has left a group; what they do not take is logged.

        Source: `MQClientInstance.unregisterClient`.
        """
        groups = {"consumer_group": consumer_group, "producer_group": producer_group}
        for name, address in targets_of(self._routes.brokers(), is_consumer=True):
            try:
                self._api.unregister_client(address, self._client_id, **groups, timeout=UNREGISTER_TIMEOUT)
            except RemotingError as error:
                _log.warning("broker %s at %s is not told that this client leaves: %s", name, address, error)

    def _send_to(self, broker_name: str, address: str, heartbeat: HeartbeatData) -> bool:
        try:
            version = self._api.send_heartbeat(address, heartbeat)
        except RemotingError as error:
            _log.warning("no heartbeat to broker %s at %s: %s", broker_name, address, error)
            if not isinstance(error, ResponseError):
                self._on_failed(address)
            return False
        self._routes.set_version(broker_name, address, version)
        return True


def heartbeat_of(client_id: str, members: Members) -> HeartbeatData:
    """What there is to tell.

    Source: `MQClientInstance.prepareHeartbeatData`.
    """
    consumers = tuple(_consumer_data(group, consumer) for group, consumer in members.consumers().items())
    return HeartbeatData(client_id=client_id, consumers=consumers, producers=tuple(members.producers()))


def targets_of(brokers: Mapping[str, Mapping[int, str]], *, is_consumer: bool) -> list[tuple[str, str]]:
    """Whom it is told: all addresses, or masters only where nobody consumes.

    Example:
        >>> targets_of({"b": {0: "m:1", 1: "s:1"}}, is_consumer=False)
        [('b', 'm:1')]
    """
    return [
        (name, address)
        for name, addresses in brokers.items()
        for broker_id, address in addresses.items()
        if is_consumer or broker_id == MASTER_ID
    ]


def _consumer_data(group: str, consumer: ConsumerInner) -> ConsumerData:
    return ConsumerData(
        group_name=group,
        consume_type=consumer.consume_type,
        message_model=consumer.message_model,
        consume_from_where=str(consumer.consume_from_where),
        subscriptions=tuple(consumer.subscriptions()),
        unit_mode=consumer.is_unit_mode,
    )


class Reconnects:
    """Sends a heartbeat to addresses whose connection ended: soon, then ever later, until one is taken.

    Args:
        scheduler: When.
        send: Sends a heartbeat to an address, and says whether it was taken.
        longest: Seconds after which it is left to the usual heartbeats.
        chance: A number from 0 to 1: clients of one broker do not all come back at the same moment.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        send: Callable[[str], bool],
        longest: float,
        *,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._scheduler, self._send, self._longest, self._chance = scheduler, send, longest, chance
        self._lock = threading.Lock()
        self._waiting: set[str] = set()

    def lost(self, address: str) -> None:
        """The connection to an address ended."""
        with self._lock:
            if address in self._waiting:
                return
            self._waiting.add(address)
        self._later(address, FIRST_DELAY)

    def _later(self, address: str, delay: float) -> None:
        self._scheduler.later(delay * (0.5 + self._chance()), lambda: self._try(address, delay))

    def _try(self, address: str, delay: float) -> None:
        if not self._send(address) and delay * 2 < self._longest:
            self._later(address, delay * 2)
            return
        with self._lock:
            self._waiting.discard(address)
