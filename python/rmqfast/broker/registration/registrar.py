"""Decides when the broker registers, and with which topics.

Source: RocketMQ's `BrokerController`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.registration.name_servers import NameServers
from rmqfast.broker.topics.topic_manager import TopicManager, mask_permission
from rmqfast.logs import QuietLock, logger_of
from rmqfast.store.config import TopicConfig
from rmqfast.system import monotonic
from rmqfast.threads import new_condition, new_thread

_log = logger_of(__name__)
#: Seconds until a name server that did not answer is asked again.
_RETRY_INTERVAL = 2.0
#: Seconds that the creator of a topic waits for the registration, so that clients find the route at once.
_PATIENCE, _PATIENCE_WHILE_ONE_IS_DOWN = 3.0, 0.2
#: With more topics than this, the creator does not wait; these come from a client with many groups.
_WAITED_FOR = 16
#: Topics per change and request, so that small changes do not wait for a large one.
_PIECE = 16


class Registrar:
    """Registers all topics at the start, later only changed topics. Compares versions every 30 seconds.

    One thread sends the registrations, so that requests to the broker hardly wait for them.
    """

    def __init__(self, name_servers: NameServers, topics: TopicManager, config: Callable[[], BrokerConfig]) -> None:
        self._name_servers = name_servers
        self._topics = topics
        self._config = config
        self._changed = new_condition()
        self._changes: list[_Change] = []
        self._is_stopped = False
        self._versioning = QuietLock()
        #: Version of the last registration; name servers accept each version only once.
        self._last_version: Any = None
        self._thread = new_thread(self._run, name="rmqfast-register")

    def start(self) -> None:
        """Registers for the first time. Waits for a name server that is down at most `registerBrokerTimeoutMills`."""
        self._register()
        self._thread.start()

    def register_changes(self, topics: Sequence[TopicConfig] | None) -> None:
        """Registers some topics; None means all. Waits a moment for the answers if there are few topics."""
        change = _Change(None if topics is None else list(topics))
        with self._changed:
            self._changes.append(change)
            self._changed.notify_all()
            if topics is None or len(topics) <= _WAITED_FOR:
                patience = _PATIENCE if self._name_servers.all_know else _PATIENCE_WHILE_ONE_IS_DOWN
                self._changed.wait_for(lambda: change.is_done or self._is_stopped, patience)

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._name_servers.unregister()
        self._name_servers.close()

    def _run(self) -> None:
        next_time = monotonic() + self._period()
        while True:
            wait = next_time - monotonic() if self._name_servers.all_know else _RETRY_INTERVAL
            with self._changed:
                self._changed.wait_for(lambda: self._changes or self._is_stopped, wait)
                if self._is_stopped:
                    return
                changes = list(self._changes)
            if changes:
                self._send(changes)
            elif monotonic() < next_time:
                self._name_servers.retry(self._all_topics())
            else:
                self._refresh()
                next_time = monotonic() + self._period()

    def _send(self, changes: Sequence[_Change]) -> None:
        """Sends a registration with the next topics of each change, and drops changes that are finished."""
        topics: list[TopicConfig] = []
        for change in changes:
            topics += change.take(_PIECE)
        if any(change.is_of_all for change in changes):
            self._register()
        elif topics:
            self._name_servers.register_topics(self._registration_of(topics), self._all_topics)
        with self._changed:
            for change in changes:
                change.is_done = not change.pending
            self._changes = [change for change in self._changes if not change.is_done]
            self._changed.notify_all()

    def _refresh(self) -> None:
        """Registers all topics again, unless every name server has the current version."""
        if not self._name_servers.are_current(self._topics.data_version.to_json()):
            self._register()
            return
        for ordered in self._name_servers.ask_ordered_topics():
            self._topics.update_order_topics(ordered)

    def _register(self) -> None:
        try:
            for ordered in self._name_servers.register(self._all_topics()):
                self._topics.update_order_topics(ordered)
        except Exception:  # noqa: BLE001  # the next attempt may succeed
            _log.exception("the name servers could not be told of this broker")

    def _period(self) -> float:
        # RocketMQ's bounds, ten seconds to a minute; a broker is removed after 120 seconds.
        return min(max(self._config().number("registerNameServerPeriod"), 10_000), 60_000) / 1000

    def _all_topics(self) -> dict[str, Any]:
        return self._registration_of(None)

    def _registration_of(self, topics: Iterable[TopicConfig] | None) -> dict[str, Any]:
        """Returns the registration of some or all topics, with a version that was not used before."""
        with self._versioning:
            # A name server ignores topics with a version that it already has, even if it missed some of them.
            if self._topics.data_version.to_json() == self._last_version:
                self._topics.advance()
            registration = self._wrapper(topics)
            self._last_version = registration["dataVersion"]
            return registration

    def _wrapper(self, topics: Iterable[TopicConfig] | None = None) -> dict[str, Any]:
        permission = self._config().number("brokerPermission")
        return self._topics.wrapper(topics, lambda topic: mask_permission(topic, permission))


class _Change:
    """Topics that are to be registered.

    `is_of_all` stands for all topics. `pending` are the topics still to be sent. `is_done` says that name servers have
    all of them.
    """

    def __init__(self, topics: list[TopicConfig] | None) -> None:
        self.is_of_all = topics is None
        self.pending = topics or []
        self.is_done = False

    def take(self, count: int) -> list[TopicConfig]:
        batch, self.pending = self.pending[:count], self.pending[count:]
        return batch
