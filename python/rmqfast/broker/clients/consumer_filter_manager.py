"""Stores SQL92 subscriptions: their expressions, and the time at which they lost their last consumer.

Source: RocketMQ's `ConsumerFilterManager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rmqfast.broker.metadata import Metadata
from rmqfast.errors import ResponseError
from rmqfast.logs import QuietLock, logger_of
from rmqfast.remoting import ResponseCode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.remoting.rate_limit import limited
from rmqfast.store.config import ConsumerFilterData, ConsumerFilterTable

_log = limited(logger_of("rmqfast.broker"))
#: Limit of the characters of all expressions; compiled, they take ten times as much memory.
MAX_EXPRESSIONS = 64 << 20


class ConsumerFilterManager:
    """The SQL92 subscriptions of groups that are or were online."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._lock = QuietLock()
        self._table = ConsumerFilterTable()
        self._topics_by_group: dict[str, set[str]] = {}
        self._changed: set[str] = set()
        self._size = 0

    def load(self, *, now: int) -> None:
        """Loads the saved subscriptions. None of them has a consumer yet."""
        table = self._metadata.load(ConsumerFilterTable)
        with self._lock:
            # Treated as if their consumers had left 30 seconds ago; after 24 hours without a consumer they are removed.
            self._table = table.after_restart(now=now)
            self._size = sum(len(filter_data.expression) for filter_data in self._table.values())
            self._changed = {topic for topic, _ in table}
            for topic, group in self._table:
                self._topics_by_group.setdefault(group, set()).add(topic)

    def persist(self, *, now: int) -> None:
        """Removes subscriptions that had no consumer for 24 hours, and saves changes."""
        with self._lock:
            for topic, group in self._table.keys() - self._table.without_dead(now=now).keys():
                self._remove(topic, group)
            for topic in self._changed:
                self._metadata.put(ConsumerFilterTable, topic, self._table.topic_json(topic))
            self._changed.clear()
        self._metadata.flush()

    def register(
        self, group: str, subscriptions: Iterable[SubscriptionData], problems: Mapping[str, str | None], *, now: int
    ) -> None:
        """Applies a group's subscriptions from a heartbeat. The group's subscriptions to other topics become dead.

        `problems` has, for each subscription new to the group, the reason why its expression does not compile, or None.
        """
        topics = set()
        with self._lock:
            for subscription in subscriptions:
                topics.add(subscription.topic)
                if not subscription.is_tag_type and subscription.sub_string:
                    self._register(group, subscription, problems, now)
            for topic in self._topics_by_group.get(group, set()) - topics:
                self._die(group, topic, now)

    def check_room(self, group: str, subscriptions: Iterable[SubscriptionData]) -> None:
        """Refuses more expressions than the limit. Before that, removes subscriptions without a consumer."""
        wanted = {it.topic: it.sub_string for it in subscriptions if not it.is_tag_type}
        with self._lock:
            if self._size_with(group, wanted) <= MAX_EXPRESSIONS:
                return
            for topic, name in [key for key, filter_data in self._table.items() if filter_data.dead]:
                self._remove(topic, name)
            size = self._size_with(group, wanted)
        if size > MAX_EXPRESSIONS:
            remark = f"expressions of all groups: expected at most {MAX_EXPRESSIONS} characters, got {size}"
            raise ResponseError(ResponseCode.SYSTEM_ERROR, remark)

    def _size_with(self, group: str, wanted: Mapping[str, str]) -> int:
        # A new expression replaces the group's old one for the topic.
        before = (self._table.get((topic, group)) for topic in wanted)
        replaced = sum(len(filter_data.expression) for filter_data in before if filter_data is not None)
        return self._size - replaced + sum(map(len, wanted.values()))

    def unregister(self, group: str, *, now: int) -> None:
        """Marks the subscriptions of a group that has no consumers as dead."""
        with self._lock:
            for topic in list(self._topics_by_group.get(group, ())):
                self._die(group, topic, now)

    def _register(
        self, group: str, subscription: SubscriptionData, problems: Mapping[str, str | None], now: int
    ) -> None:
        old = self._table.get((subscription.topic, group))
        if old is None:
            self._build(group, subscription, problems, now)
        elif subscription.sub_version < old.client_version:
            _log.info("group %s: an older expression of topic %s is ignored", group, subscription.topic)
        elif subscription.sub_version == old.client_version:
            # A consumer that returns within 24 hours revives its expression.
            if old.dead:
                self._put(replace(old, dead_time=0))
        elif _is_other(old, subscription):
            # The data plane does not take a version older than the group's, so the old expression stays.
            if subscription.topic in problems:
                # A new expression that does not compile removes the old one; the client's next pull reports the error.
                self._remove(subscription.topic, group)
                self._build(group, subscription, problems, now)
        else:
            self._put(replace(old, client_version=subscription.sub_version, dead_time=0))

    def _build(self, group: str, subscription: SubscriptionData, problems: Mapping[str, str | None], now: int) -> None:
        # The data plane compiles only new subscriptions; known ones were accepted or refused before.
        if subscription.topic not in problems:
            return
        error = problems[subscription.topic]
        if error is not None:
            names = (group[:200], subscription.topic[:200], subscription.sub_string[:200])
            _log.error("group %r, topic %r: %r: %s", *names, error[:200])
            return
        self._put(
            ConsumerFilterData(
                topic=subscription.topic,
                consumer_group=group,
                expression=subscription.sub_string,
                expression_type=subscription.expression_type,
                born_time=now,
                client_version=subscription.sub_version,
            )
        )

    def _put(self, filter_data: ConsumerFilterData) -> None:
        old = self._table.get((filter_data.topic, filter_data.consumer_group))
        self._size += len(filter_data.expression) - (0 if old is None else len(old.expression))
        self._table.put(filter_data)
        self._topics_by_group.setdefault(filter_data.consumer_group, set()).add(filter_data.topic)
        self._changed.add(filter_data.topic)

    def _remove(self, topic: str, group: str) -> None:
        self._size -= len(self._table[topic, group].expression)
        self._table.remove(topic, group)
        self._topics_by_group[group].discard(topic)
        if not self._topics_by_group[group]:
            del self._topics_by_group[group]
        self._changed.add(topic)

    def _die(self, group: str, topic: str, now: int) -> None:
        filter_data = self._table[topic, group]
        if not filter_data.dead:
            self._put(replace(filter_data, dead_time=now))


def _is_other(old: ConsumerFilterData, subscription: SubscriptionData) -> bool:
    return (old.expression, old.expression_type) != (subscription.sub_string, subscription.expression_type)
