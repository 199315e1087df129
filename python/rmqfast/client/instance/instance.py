"""Shares connections, routes and timers among the clients of a process with the same client id.

Source: `MQClientInstance`, `MQClientManager`, `RebalanceService`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from rmqfast._native import NameServers, RouteTable
from rmqfast.client.instance.api import ClientApi
from rmqfast.client.instance.broker_requests import BrokerRequests, decode_message
from rmqfast.client.instance.config import ClientConfig
from rmqfast.client.instance.exits import EXITS
from rmqfast.client.instance.heartbeats import Heartbeats, Reconnects
from rmqfast.client.instance.members import ConsumerInner, InnerProducer, Members, ProducerInner
from rmqfast.client.instance.request_futures import RequestFutures
from rmqfast.client.instance.routes import RouteUpdater
from rmqfast.client.instance.scheduler import Scheduler
from rmqfast.errors import ClientError, ForkError, RemotingError, ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import Again, Connections, Later, Processor, Request, RequestCode, Response
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.system import after_fork, monotonic
from rmqfast.threads import new_thread, sleep

_log = logger_of(__name__)

_T = TypeVar("_T")


class ClientInstance:
    """Connections, routes and timers of all clients with the same client id."""

    def __init__(self, config: ClientConfig, client_id: str) -> None:
        self.client_id: Final = client_id
        self.config: Final = config
        self._members = Members()
        self.pid: Final = os.getpid()
        self.scheduler: Final = Scheduler()
        # a separate thread, so that brokers that do not answer a rebalance do not delay heartbeats
        self._rebalancing, self._is_rebalance_due = Scheduler("rmqfast-rebalance"), False
        names = config.name_servers
        requests = BrokerRequests(self._members, self.rebalance_immediately, decode_message, names)
        self.requests: Final = RequestFutures()
        self._processors: dict[int, Processor] = {
            **requests.processors(),
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self.requests.receive,
        }
        self.connections: Final = Connections(
            tls=config.tls,
            # as in Java, pull and lite pull consumers mark each request with `ReqT`; their client ids end alike
            sign=config.signer(is_stream=client_id.endswith("@STREAM")),
            processors=dict.fromkeys(self._processors, self._answer),
            on_closed=self._connection_lost,
            callback_threads=config.callback_threads,
            connect_timeout=config.connect_timeout,
        )
        self.api: Final = ClientApi(
            self.connections, NameServers(names, self.connections, _log.warning), timeout=config.request_timeout
        )
        self.routes: Final = RouteTable(self.api.name_servers, config.request_timeout, config.translated)
        self._updater = RouteUpdater(self.routes, self._members, timeout=config.request_timeout)
        self._heartbeats = Heartbeats(client_id, self._members, self.routes, self.api, on_failed=self._connection_lost)
        self._reconnects = Reconnects(self.scheduler, self._heartbeats.send, config.heartbeat_interval)
        self._lock, self._inner_producer = QuietLock(reentrant=True), InnerProducer()
        self._is_started = self._is_closed = False

    @classmethod
    def of(cls, config: ClientConfig, client_id: str) -> ClientInstance:
        """Returns the instance of a client id in this process. Each call must be paired with a `release`."""
        return _INSTANCES.take(client_id, lambda: cls(config, client_id))

    @classmethod
    def all(cls) -> list[ClientInstance]:
        """Returns the instances of this process."""
        return _INSTANCES.things()

    def release(self) -> None:
        """Ends the caller's use of the instance. The last user shuts it down."""
        if os.getpid() == self.pid and _INSTANCES.give_back(self.client_id):
            self.shutdown()

    def start(self) -> None:
        """Starts the timers and the rebalance. Does nothing if they are running.

        Raises:
            ClientError: No name server is configured (10004) or answers within `start_timeout` (10001), or the instance
                was shut down.
            ForkError: The instance belongs to the parent process.
        """
        self._check_process()
        with self._lock:
            if self._is_closed:
                raise ClientError(
                    f"The Factory object[{self.client_id}] has been created before, and failed.",
                    next_step="it was shut down: make a new client",
                )
            if self._is_started:
                return
            self.api.name_servers.check()
            if self.config.start_timeout is not None:
                self._wait_for_answer(self.config.start_timeout)
            self._start_timers()
            EXITS.add(self)
            self._is_started = True
        _log.info("the client instance %s is started", self.client_id)

    def shutdown(self) -> None:
        """Ends all threads and connections. Does nothing while the instance has clients, or in a fork."""
        # a fork has none of the threads, and other clients may still use the instance
        if os.getpid() != self.pid or self._members.consumers() or self._members.producers():
            return
        self._end(None)

    def end_at_exit(self, deadline: float) -> None:
        """Shuts down the instance and its clients when the interpreter ends.

        Offsets are committed. Brokers see the connections close, and other members take over the queues.
        """
        if self._members.consumers():
            # on a thread, because a broker may not answer in time
            storing = new_thread(self.persist_consumer_offsets)
            storing.start()
            # half of the time is left for threads and connections
            storing.join(max(0.0, (deadline - monotonic()) / 2))
        self._end(deadline)

    def register_consumer(self, group: str, consumer: ConsumerInner) -> None:
        """Adds a consumer.

        Raises:
            ClientError: The group already has a member of this kind here.
        """
        self._check_process()
        self._members.add_consumer(group, consumer)

    def unregister_consumer(self, group: str) -> None:
        """Removes a consumer and unregisters it at all brokers. Failures are logged."""
        if self._members.remove_consumer(group):
            self._leave(consumer_group=group)

    def register_producer(self, group: str, producer: ProducerInner) -> None:
        """Adds a producer.

        Raises:
            ClientError: The group already has a member of this kind here.
        """
        self._check_process()
        self._members.add_producer(group, producer)

    def unregister_producer(self, group: str) -> None:
        """Removes a producer and unregisters it at all brokers. Failures are logged."""
        if self._members.remove_producer(group):
            self._leave(producer_group=group)

    def consumers(self) -> Mapping[str, ConsumerInner]:
        """Returns the consumers by group."""
        return self._members.consumers()

    def producers(self) -> Mapping[str, ProducerInner]:
        """Returns the producers by group."""
        return self._members.producers()

    def consumer(self, group: str) -> ConsumerInner | None:
        """Returns the consumer of a group. None if there is none."""
        return self._members.consumers().get(group)

    def producer(self, group: str) -> ProducerInner | None:
        """Returns the producer of a group. None if there is none."""
        return self._members.producers().get(group)

    @property
    def is_closed(self) -> bool:
        """Whether the instance was shut down or the interpreter is ending."""
        return self._is_closed

    @property
    def inner_producer(self) -> Any:
        """Returns the producer that resends messages that brokers did not take back. It is created when first needed.

        Raises:
            ClientError: `rmqfast.client.producer` was not imported.
        """
        return self._inner_producer.get(self)

    def update_route(self, topic: str, default: tuple[str, int] | None = None) -> bool:
        """Fetches the route of a topic from a name server. Returns whether the route changed.

        Args:
            topic: The topic.
            default: A topic whose route is used if `topic` does not exist, and the maximum of queues per broker.

        Returns:
            Whether the route changed. An unknown topic is logged, and its old route stays.

        Raises:
            ClientError: No name server is configured (10004) or answers (10001).
            ForkError: The instance belongs to the parent process.
        """
        self._check_process()
        return self._updater.update(topic, default)

    def send_heartbeats(self) -> bool:
        """Sends heartbeats to all brokers. Returns whether all accepted."""
        self._check_process()
        return self._heartbeats.send()

    def persist_consumer_offsets(self) -> None:
        """Commits the offsets of all consumers. Failures are logged."""
        for group, consumer in self._members.consumers().items():
            try:
                consumer.persist_consumer_offset()
            except Exception:  # noqa: BLE001 - the other groups still commit
                _log.exception("offsets of group %s could not be stored", group)

    def rebalance_immediately(self) -> None:
        """Requests a rebalance of all consumers. Several requests at the same time cause only one rebalance."""
        if self._is_started and not self._is_rebalance_due:
            self._is_rebalance_due = True
            self._rebalancing.later(0.0, self._rebalance_now)

    def rebalance(self) -> None:
        """Rebalances all consumers on the calling thread. Failures are logged."""
        self._check_process()
        for group, consumer in self._members.consumers().items():
            try:
                consumer.do_rebalance()
            except Exception:  # noqa: BLE001 - the other groups are still rebalanced
                _log.exception("group %s could not be rebalanced", group)

    def find_consumer_ids(self, topic: str, group: str) -> list[str] | None:
        """Asks a broker of the topic for the client ids of a group. None if that fails."""
        address = self.routes.any_address(topic)
        try:
            if address is None:
                self.update_route(topic)
                address = self.routes.any_address(topic)
            return None if address is None else list(self.api.consumer_ids(address, group))
        except (RemotingError, ClientError) as error:
            # None instead of an empty list: the rebalance is skipped and all members keep their queues
            _log.warning("the members of group %s are not known: %s", group, error)
            return None

    def check_client_in_broker(self) -> None:
        """Asks a broker of each topic to compile the SQL92 expressions of consumers.

        Raises:
            ClientError: A broker rejects an expression, or does not answer.
        """
        self._check_process()
        for group, consumer in self._members.consumers().items():
            # Java stops at the first consumer without subscriptions; here the others are checked, too
            for subscription in consumer.subscriptions():
                address = None if subscription.is_tag_type else self.routes.any_address(subscription.topic)
                if address is None:
                    continue
                try:
                    self.api.check_client_config(
                        address, group, self.client_id, subscription, namespace=self.config.namespace
                    )
                except RemotingError as error:
                    raise _expression_error(subscription, error) from error

    def _check_process(self) -> None:
        if os.getpid() != self.pid:
            raise ForkError(f"the client {self.client_id} is that of a parent process: make another one in this one")

    def _wait_for_answer(self, timeout: float) -> None:
        """Asks name servers until one answers. The answer may be an error."""
        until = monotonic() + timeout
        while True:
            try:
                self.api.name_servers.ping(max(_AGAIN, until - monotonic()))
            except ClientError:
                if monotonic() + _AGAIN >= until:
                    raise
                sleep(_AGAIN)
            else:
                return

    def _start_timers(self) -> None:
        config, every = self.config, self.scheduler.every
        # initial delays as in Java: 10 ms, 1 s and 10 s
        every(0.01, config.poll_name_server_interval, self._updater.update_all)
        # Java has no such timer: it finds a topic that is created later only at the next refresh, after up to 30 s
        every(config.missing_route_interval, config.missing_route_interval, self._look_for_missing_routes)
        self._rebalancing.every(config.rebalance_interval, config.rebalance_interval, self._rebalance_now)
        every(min(1.0, config.heartbeat_interval), config.heartbeat_interval, self._heartbeat_round)
        every(
            min(10.0, config.persist_offset_interval * 2), config.persist_offset_interval, self.persist_consumer_offsets
        )

    def _rebalance_now(self) -> None:
        # before the rebalance: it may miss changes from now on, which then request another one
        self._is_rebalance_due = False
        self.rebalance()

    def _look_for_missing_routes(self) -> None:
        if self._updater.update_missing():
            # the topic's broker may not know the group yet
            self._heartbeats.send()
            self.rebalance_immediately()

    def _heartbeat_round(self) -> None:
        for address in self.routes.clean_offline_brokers():
            _log.info("the broker at %s stands in no route any more", address)
        self._heartbeats.send()

    def _connection_lost(self, address: str) -> None:
        if not self._is_closed and self._is_started:
            self._reconnects.lost(address)

    def _answer(self, request: Request) -> Response | Later | Again | None:
        processor = self._processors.get(request.code)
        # None: the broker gets no answer
        return None if processor is None or self._is_closed else processor(request)

    def _leave(self, *, consumer_group: str | None = None, producer_group: str | None = None) -> None:
        if os.getpid() == self.pid and not self._is_closed:
            self._heartbeats.leave(consumer_group=consumer_group, producer_group=producer_group)

    def _end(self, deadline: float | None) -> None:
        with self._lock:
            if self._is_closed:
                return
            # set under the lock, so that only one thread shuts down
            self._is_closed = True
        EXITS.remove(self)
        # closing connections wakes threads that wait for answers, so threads are joined afterwards
        self._updater.close()
        self.scheduler.stop(0)
        self._rebalancing.stop(0)
        self.requests.close()
        self.connections.close()
        for stop in (self.scheduler.stop, self._rebalancing.stop):
            wait = _LONGEST_STOP if deadline is None else max(0.0, deadline - monotonic())
            if not stop(wait):
                _log.warning("a thread of the client instance %s did not end in %.1f s", self.client_id, wait)

    def __repr__(self) -> str:
        return f"<ClientInstance {self.client_id}>"


def _expression_error(subscription: SubscriptionData, error: RemotingError) -> ClientError:
    if isinstance(error, ResponseError):
        step = "correct the expression, or set enablePropertyFilter=true at the broker"
        return ClientError(str(error), response_code=error.code, next_step=step)
    text = f"no broker says whether it takes the expression, which is of the type {subscription.expression_type}"
    return ClientError(text, next_step=str(error))


class Registry(Generic[_T]):
    """Objects by name, with a count of their users."""

    def __init__(self) -> None:
        self._clear()
        # a fork must not share clients with its parent
        after_fork(self._clear)

    def take(self, name: str, make: Callable[[], _T]) -> _T:
        """Returns the object of a name and counts one more user. The object is created if it is missing."""
        with self._lock:
            thing, users = self._things.get(name) or (make(), 0)
            self._things[name] = (thing, users + 1)
            return thing

    def give_back(self, name: str) -> bool:
        """Removes one user from the count. If it was the last, removes the object, too, and returns True."""
        with self._lock:
            counted = self._things.get(name)
            if counted is None:
                return False
            thing, users = counted
            if users > 1:
                self._things[name] = (thing, users - 1)
            else:
                del self._things[name]
            return users <= 1

    def things(self) -> list[_T]:
        with self._lock:
            return [thing for thing, _ in self._things.values()]

    def _clear(self) -> None:
        """Empties the registry and replaces its lock. Also runs in a fork, which must not use its parent's clients."""
        self._lock = QuietLock()
        self._things: dict[str, tuple[_T, int]] = {}


#: All instances of this process, by client id.
_INSTANCES: Registry[ClientInstance] = Registry()
#: Seconds that a shutdown waits for a rebalance in flight.
_LONGEST_STOP = 5.0
#: Seconds between two attempts to reach a name server at the start.
_AGAIN = 0.1
