"""Looks now and then whether topics have got other queues.

Source: `DefaultLitePullConsumerImpl.fetchTopicMessageQueuesAndCompare`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from rmqfast.errors import RmqError
from rmqfast.logs import logger_of
from rmqfast.message import MessageQueue
from rmqfast.threads import new_lock

_log = logger_of(__name__)

#: Called with the topic and its queues. Source: `TopicMessageQueueChangeListener`.
TopicMessageQueueChangeListener: TypeAlias = Callable[[str, frozenset[MessageQueue]], object]


class TopicWatch:
    """Tells listeners when the queues of their topics are others."""

    def __init__(self, fetch: Callable[[str], frozenset[MessageQueue]]) -> None:
        self._fetch = fetch
        self._lock = new_lock()
        self._listeners: dict[str, TopicMessageQueueChangeListener] = {}
        self._queues: dict[str, frozenset[MessageQueue]] = {}

    def register(self, topic: str, listener: TopicMessageQueueChangeListener) -> None:
        """Has a listener told; one that the topic has already is told no more."""
        with self._lock:
            is_another = topic in self._listeners
            self._listeners[topic] = listener
        if is_another:
            _log.warning("Topic %s had been registered, new listener will overwrite the old one", topic)

    def fetch_all(self) -> None:
        """Notes the queues of all topics, as a start; what fails is logged.

        Source: `DefaultLitePullConsumerImpl.operateAfterRunning`.
        """
        for topic in self._topics():
            self.fetch(topic)

    def fetch(self, topic: str) -> None:
        """Notes the queues of a topic, as a start."""
        queues = self._fetched(topic)
        if queues is not None:
            with self._lock:
                self._queues[topic] = queues

    def compare(self) -> None:
        """Looks at all topics, and tells listeners; a topic without queues counts as changed.

        Source: `DefaultLitePullConsumerImpl.fetchTopicMessageQueuesAndCompare`, `isSetEqual`.
        """
        for topic in self._topics():
            queues = self._fetched(topic)
            if queues is None:
                continue
            with self._lock:
                before, self._queues[topic] = self._queues.get(topic), queues
                listener = self._listeners.get(topic)
            if listener is not None and (before != queues or not queues):
                _tell(listener, topic, queues)

    def _topics(self) -> list[str]:
        with self._lock:
            return list(self._listeners)

    def _fetched(self, topic: str) -> frozenset[MessageQueue] | None:
        try:
            return self._fetch(topic)
        except RmqError as error:
            _log.warning("the queues of topic %s cannot be looked up: %s", topic, error)
            return None


def _tell(listener: TopicMessageQueueChangeListener, topic: str, queues: frozenset[MessageQueue]) -> None:
    try:
        listener(topic, queues)
    except Exception:  # noqa: BLE001 - the application's, on a thread that others need
        _log.exception("the listener of topic %s failed", topic)
