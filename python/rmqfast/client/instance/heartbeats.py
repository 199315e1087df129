"""Sends heartbeats to brokers: at intervals, and soon after a connection was lost.

Source: `MQClientInstance.prepareHeartbeatData`, `sendHeartbeatToAllBroker`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from rmqfast._native import RouteTable
from rmqfast.client.instance.api import ClientApi
from rmqfast.client.instance.members import ConsumerInner, Members
from rmqfast.client.instance.scheduler import Scheduler
from rmqfast.errors import RemotingError, ResponseError
from rmqfast.logs import logger_of
from rmqfast.remoting.protocol.broker_data import MASTER_ID
from rmqfast.remoting.protocol.heartbeat_data import ConsumerData, HeartbeatData
from rmqfast.threads import new_lock

_log = logger_of(__name__)

#: Java's timeout, so that a broker that does not answer does not delay a shutdown for longer.
UNREGISTER_TIMEOUT = 3.0
FIRST_DELAY = 0.5


class Heartbeats:
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
        self._lock = new_lock()
        self._is_wanted_again = False

    def send(self, only: str | None = None) -> bool:
        """Sends heartbeats. Returns whether all brokers accepted. False if another thread is sending; it sends again.

        Java skips the second heartbeat, so a broker that was found meanwhile would not know the group for half a
        minute.
        """
        if not self._lock.acquire(blocking=False):
            # read by the thread that is sending
            self._is_wanted_again = True
            # again, because the other thread may have read the flag just before it was set
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
        # as in Java: without groups there is no heartbeat
        if not heartbeat.consumers and not heartbeat.producers:
            return True
        # slaves only serve pulls, so producers only register at masters
        targets = targets_of(self._routes.brokers(), is_consumer=bool(heartbeat.consumers))
        taken = [self._send_to(*target, heartbeat) for target in targets if only in {None, target[1]}]
        return all(taken)

    def leave(self, *, consumer_group: str | None = None, producer_group: str | None = None) -> None:
        """Unregisters a group of this client at all brokers. Failures are logged."""
        groups = {"consumer_group": consumer_group, "producer_group": producer_group}
        # slaves, too: an earlier consumer may have registered there
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
            # a broker that refuses is running; only unreachable brokers are retried soon
            if not isinstance(error, ResponseError):
                self._on_failed(address)
            return False
        # the release decides whether SQL92 subscriptions can be pulled from the broker
        self._routes.set_version(broker_name, address, version)
        return True


def heartbeat_of(client_id: str, members: Members) -> HeartbeatData:
    consumers = tuple(_consumer_data(group, consumer) for group, consumer in members.consumers().items())
    return HeartbeatData(client_id=client_id, consumers=consumers, producers=tuple(members.producers()))


def targets_of(brokers: Mapping[str, Mapping[int, str]], *, is_consumer: bool) -> list[tuple[str, str]]:
    """Returns the brokers that get heartbeats: all addresses, or only masters if the client has no consumer."""
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
    """Sends heartbeats to an address whose connection was lost, at growing intervals, until a heartbeat is accepted.

    A restarted broker knows no clients: until the next regular heartbeat, after up to 30 s, it would refuse pulls.
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
        self._lock = new_lock()
        self._waiting: set[str] = set()

    def lost(self, address: str) -> None:
        """Called when the connection to an address was lost."""
        with self._lock:
            if address in self._waiting:
                return
            self._waiting.add(address)
        self._later(address, FIRST_DELAY)

    def _later(self, address: str, delay: float) -> None:
        # a random delay, so that the clients of a restarted broker do not return all at once
        self._scheduler.later(delay * (0.5 + self._chance()), lambda: self._try(address, delay))

    def _try(self, address: str, delay: float) -> None:
        # after that, the regular heartbeats are enough
        if not self._send(address) and delay * 2 < self._longest:
            self._later(address, delay * 2)
            return
        with self._lock:
            self._waiting.discard(address)
