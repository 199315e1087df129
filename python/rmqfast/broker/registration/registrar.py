"""When name servers are told of a broker.

Source: `BrokerController.registerBrokerAll`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from rmqfast.broker.configuration.config import BrokerConfig
from rmqfast.broker.registration.name_servers import NameServers
from rmqfast.broker.topics.topic_manager import TopicManager
from rmqfast.broker.topics.topic_rules import masked
from rmqfast.store.config import TopicConfig

__all__ = ["Registrar"]

_log = logging.getLogger(__name__)
#: Seconds until a name server that did not answer is told again.
_AGAIN = 2.0
#: Seconds that whoever made a topic waits, so that a client that asks for its route at once finds it.
_PATIENCE = 0.2


class Registrar:
    """Tells name servers of all topics at the start, every 30 seconds (`registerNameServerPeriod`) and of what changes.

    Args:
        name_servers: Are told.
        topics: What they are told.
        config: The configuration as it is now.
    """

    def __init__(self, name_servers: NameServers, topics: TopicManager, config: Callable[[], BrokerConfig]) -> None:
        self._name_servers = name_servers
        self._topics = topics
        self._config = config
        self._changed = threading.Condition()
        self._asked = self._done = 0
        self._is_stopped = False
        self._telling = threading.Lock()
        #: The versions with which name servers were told of one topic last, and of all: they take each of them once.
        self._told_one: Any = None
        self._told_all: Any = None
        self._thread = threading.Thread(target=self._run, name="rmqfast-register", daemon=True)

    def start(self) -> None:
        """Tells all name servers for the first time; one that is down takes at most `registerBrokerTimeoutMills`."""
        self._register()
        self._thread.start()

    def changed(self, topic: TopicConfig | None) -> None:
        """Tells them of one topic, or of all where that is None; for all it waits a moment only.

        Source: `BrokerController.registerIncrementBrokerData`.
        """
        if topic is not None:
            self._name_servers.register_topic(self._news_of(topic), self._all_topics)
            return
        with self._changed:
            self._asked += 1
            wanted = self._asked
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._done >= wanted or self._is_stopped, _PATIENCE)

    def stop(self) -> None:
        """Tells all name servers that the broker is gone.

        Source: `BrokerController.unregisterBrokerAll`.
        """
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._name_servers.unregister()
        self._name_servers.close()

    def _run(self) -> None:
        due = time.monotonic() + self._period()
        while True:
            wait = due - time.monotonic() if self._name_servers.all_know else _AGAIN
            with self._changed:
                self._changed.wait_for(lambda: self._asked > self._done or self._is_stopped, wait)
                if self._is_stopped:
                    return
                asked = self._asked
            if asked == self._done and time.monotonic() < due:
                self._name_servers.retry(self._all_topics())
                continue
            self._register()
            due = time.monotonic() + self._period()
            with self._changed:
                self._done = asked
                self._changed.notify_all()

    def _register(self) -> None:
        try:
            for ordered in self._name_servers.register(self._all_topics()):
                self._topics.update_order_topics(ordered)
        except Exception:  # noqa: BLE001 - the next time may do better
            _log.exception("the name servers could not be told of this broker")

    def _period(self) -> float:
        return min(max(self._config().number("registerNameServerPeriod"), 10_000), 60_000) / 1000

    def _all_topics(self) -> dict[str, Any]:
        """What is told of all topics, with a version that no single one was told with."""
        with self._telling:
            if self._topics.data_version.to_json() == self._told_one:
                self._topics.advance()
            news = self._wrapper()
            self._told_all = news["dataVersion"]
            return news

    def _news_of(self, topic: TopicConfig) -> dict[str, Any]:
        """What is told of one topic, with a version of its own: several may change at the same time."""
        with self._telling:
            if self._topics.data_version.to_json() in (self._told_one, self._told_all):
                self._topics.advance()
            news = self._wrapper([topic])
            self._told_one = news["dataVersion"]
            return news

    def _wrapper(self, topics: Iterable[TopicConfig] | None = None) -> dict[str, Any]:
        permission = self._config().number("brokerPermission")
        return self._topics.wrapper(topics, lambda topic: masked(topic, permission))
