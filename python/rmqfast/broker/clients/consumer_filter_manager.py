"""The subscriptions by expression: which compile, which have no consumer any more.

Source: `ConsumerFilterManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from os import PathLike
from threading import Lock

from rmqfast.broker.clients.bloom_filter import BITS, bit_positions
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from rmqfast.store.config import BloomFilterData, ConsumerFilterData, ConsumerFilterTable

#: Says what is wrong with an SQL92 expression, in the words that a client is told; None where it compiles.
CheckSql = Callable[[str], str | None]

_log = logging.getLogger("rmqfast.broker")


class ConsumerFilterManager:
    """The subscriptions of groups by expression, with their consumers and without.

    Args:
        root: The store's directory, below which `config/consumerFilter.json` is.
        check_sql: Says whether an expression compiles.

    Source: `ConsumerFilterManager`.
    """

    def __init__(self, root: str | PathLike[str], check_sql: CheckSql) -> None:
        self._root = root
        self._check_sql = check_sql
        self._lock = Lock()
        self._file_lock = Lock()
        self._by_group: dict[str, dict[str, ConsumerFilterData]] = {}
        self._file = ConsumerFilterTable()

    def load(self, *, now: int) -> None:
        """Reads the file; none of its subscriptions has a consumer yet.

        Raises:
            CorruptError: The file is there, and neither it nor its `.bak` can be read.

        Source: `ConsumerFilterManager.decode`.
        """
        table = ConsumerFilterTable.load(self._root)
        with self._lock:
            self._file = table
            self._by_group = {}
            for filter_data in table.restarted(now=now).values():
                self._put(filter_data)

    def persist(self, *, now: int) -> None:
        """Forgets what has had no consumer for 24 hours, and writes the file if it changed.

        Raises:
            StoreIOError: The operating system refused.

        Source: `ConsumerFilterManager.encode`, `clean`.
        """
        with self._file_lock:
            with self._lock:
                table = self._table().cleaned(now=now)
                self._by_group = {}
                for filter_data in table.values():
                    self._put(filter_data)
            if table.to_json() != self._file.to_json():
                table.save(self._root)
                self._file = table

    def register(self, group: str, wanted: Iterable[SubscriptionData], *, now: int) -> None:
        """Takes what a heartbeat says a group wants; topics that it does not want by expression any more are dead.

        Source: `ConsumerFilterManager.register`.
        """
        topics = set()
        with self._lock:
            for subscription in wanted:
                topics.add(subscription.topic)
                if not subscription.is_tag_type and subscription.sub_string:
                    self._register(group, subscription, now)
            for topic in self._by_group.get(group, {}).keys() - topics:
                self._die(group, topic, now)

    def unregister(self, group: str, *, now: int) -> None:
        """Notes that a group has no consumer any more.

        Source: `ConsumerFilterManager.unRegister`.
        """
        with self._lock:
            for topic in self._by_group.get(group, {}):
                self._die(group, topic, now)

    def get(self, topic: str, group: str) -> ConsumerFilterData | None:
        """What a group wants of a topic by expression; None where it does not, or where that does not compile.

        Source: `ConsumerFilterManager.get`.
        """
        with self._lock:
            return self._by_group.get(group, {}).get(topic)

    def compile_error(self, expression_type: str, expression: str) -> str | None:
        """What is wrong with an expression; None where it compiles.

        Source: `FilterFactory`, `SqlFilter.compile`.
        """
        if expression_type != "SQL92":
            return f"no filter is called {expression_type}"
        return self._check_sql(expression)

    def _register(self, group: str, subscription: SubscriptionData, now: int) -> None:
        old = self._by_group.get(group, {}).get(subscription.topic)
        if old is None:
            self._build(group, subscription, now)
        elif subscription.sub_version < old.client_version:
            _log.info("group %s: an older expression of topic %s is ignored", group, subscription.topic)
        elif subscription.sub_version == old.client_version:
            if old.dead:
                self._put(replace(old, dead_time=0))
        elif _is_other(old, subscription):
            # a new expression that does not compile leaves none: the client is told by its next pull
            del self._by_group[group][subscription.topic]
            self._build(group, subscription, now)
        else:
            self._put(replace(old, client_version=subscription.sub_version, dead_time=0))

    def _build(self, group: str, subscription: SubscriptionData, now: int) -> None:
        error = self.compile_error(subscription.expression_type, subscription.sub_string)
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
                bloom_filter_data=_places(group, subscription.topic),
            )
        )

    def _put(self, filter_data: ConsumerFilterData) -> None:
        self._by_group.setdefault(filter_data.consumer_group, {})[filter_data.topic] = filter_data

    def _die(self, group: str, topic: str, now: int) -> None:
        filter_data = self._by_group[group][topic]
        if not filter_data.dead:
            self._put(replace(filter_data, dead_time=now))

    def _table(self) -> ConsumerFilterTable:
        table = ConsumerFilterTable()
        table.other |= self._file.other
        for topics in self._by_group.values():
            for filter_data in topics.values():
                table.put(filter_data)
        return table


def _is_other(old: ConsumerFilterData, subscription: SubscriptionData) -> bool:
    return (
        old.expression != subscription.sub_string
        or old.expression_type != subscription.expression_type
        or old.bloom_filter_data != _places(old.consumer_group, old.topic)
    )


def _places(group: str, topic: str) -> BloomFilterData:
    return BloomFilterData(bit_num=BITS, bit_pos=bit_positions(f"{group}#{topic}"))
