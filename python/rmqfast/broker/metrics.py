"""A broker's metrics: the names and labels of RocketMQ 5's brokers, and what these lack under `rmqfast_`.

All figures are read from counters and tables that the broker has anyway: a message costs nothing more.

Source: RocketMQ 5's `BrokerMetricsConstant`, `BrokerMetricsManager`, `DefaultStoreMetricsConstant`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rmqfast.broker.clients.client_channel import ClientChannel
from rmqfast.broker.clients.consumer_manager import ConsumerGroup
from rmqfast.broker.queries.runtime_info_processor import used_ratio
from rmqfast.broker.state import BrokerState
from rmqfast.broker.statistics.store_stats import PUT_TIME_RANGES
from rmqfast.broker.topics.subscription_group_manager import SYSTEM_GROUP_PREFIX
from rmqfast.broker.topics.topic_manager import RETRY_PREFIX
from rmqfast.metrics import Family, Histogram, Kind, Sample, write_text
from rmqfast.remoting.protocol.consumer_connection import ACTIVELY
from rmqfast.remoting.protocol.subscription_data import count_differing
from rmqfast.remoting.version_names import version_name
from rmqfast.store.config import TopicConfig, built_in_groups

DLQ_PREFIX = "%DLQ%"
_BUILT_IN = frozenset(group.group_name for group in built_in_groups())
_HOUR_MS = 3_600_000
#: Upper ends of the ranges of put times, in seconds. A put of "0 ms" took less than a millisecond.
_BOUNDS = tuple(max(1, bound) / 1000 for bound in list(PUT_TIME_RANGES.values())[:-1])
_BY_GROUP = ("topic", "consumer_group", "is_retry", "is_system")
_COUNTER, _GAUGE = Kind.COUNTER, Kind.GAUGE


@dataclass(frozen=True, slots=True)
class _Lag:
    """The backlog of a group in a topic of this broker.

    `unread_at` is the store time of the oldest message that is stored and not consumed, in milliseconds since 1970.
    """

    topic: str
    group: str
    messages: int
    unread_at: int | None


def metrics_text(state: BrokerState) -> str:
    """Returns a broker's metrics as text for Prometheus, with the labels that every metric of RocketMQ 5 has."""
    config = state.config()
    cluster, name = config.text("brokerClusterName"), config.text("brokerName")
    return write_text(metrics_of(state), {"cluster": cluster, "node_type": "broker", "node_id": name})


def metrics_of(state: BrokerState) -> list[Family]:
    """Returns a broker's metrics at this moment."""
    return _Reading(state).families()


class _Reading:
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._system_topics = frozenset(state.topics.system_topics)
        self._counters = state.data_plane.counters()

    def families(self) -> list[Family]:
        lags = list(self._lags())
        groups = self._state.consumers.groups()
        return [
            *self._traffic(),
            *self._lag_families(lags),
            *self._client_families(groups),
            self._conflicts(groups),
            *self._store_families(),
            *self._other_families(),
        ]

    # Traffic: the data plane's counters.

    def _traffic(self) -> Iterator[Family]:
        """Yields messages and bytes in and out, by topic and group, since the broker's start."""
        topics = ("topic", "message_type", "is_system")
        puts, gets, sent_back = [], [], []
        for name, key, calls, messages, size in self._counters:
            if name == "TOPIC_PUT":
                puts.append(((key, "unspecified", self._is_system(key)), messages, size))
            elif name == "GROUP_GET":
                topic, _, group = key.partition("@")
                gets.append((self._by_group(topic, group), messages, size))
            elif name == "SNDBCK_PUT":
                topic, _, group = key.partition("@")
                sent_back.append(Sample((topic, group), calls))
        yield _counter("rocketmq_messages_in_total", "Messages stored.", topics, [Sample(k, n) for k, n, _ in puts])
        yield _counter("rocketmq_throughput_in_total", "Bytes stored.", topics, [Sample(k, n) for k, _, n in puts])
        yield _counter("rocketmq_messages_out_total", "Messages sent.", _BY_GROUP, [Sample(k, n) for k, n, _ in gets])
        yield _counter("rocketmq_throughput_out_total", "Bytes sent.", _BY_GROUP, [Sample(k, n) for k, _, n in gets])
        # The broker's own messages belong to no topic's statistics, but each takes an offset of its queue.
        letters = [
            Sample((topic.topic_name.removeprefix(DLQ_PREFIX), "false"), self._end(topic))
            for topic in self._state.topics.topics()
            if topic.topic_name.startswith(DLQ_PREFIX)
        ]
        dead = ("consumer_group", "is_system")
        yield _counter("rocketmq_send_to_dlq_messages_total", "Dead letters stored.", dead, letters)
        yield _counter("rmqfast_sent_back_total", "Messages that consumers sent back.", ("topic", "group"), sent_back)

    def _end(self, topic: TopicConfig) -> int:
        ends = [self._state.live.queue_bounds(topic.topic_name, queue)[1] for queue in range(topic.write_queue_nums)]
        return sum(ends)

    # Lags: offsets of groups, and the ends of queues.

    def _lags(self) -> Iterator[_Lag]:
        state, live = self._state, self._state.live
        for key, queues in state.offsets.table().items():
            topic, _, group = key.partition("@")
            # Offsets outlive a deleted group, and a subscription.
            is_there = state.topics.get(topic) is not None and state.groups.get(group) is not None
            if not is_there or not state.consumers.may_consume(group, topic):
                continue
            behind, unread_at = 0, None
            for offset, queue in zip(queues.values(), live.progress(topic, queues), strict=True):
                # Expired messages are none that the group could still read.
                behind += max(0, queue.end - max(queue.first, offset))
                if (stored_at := queue.unread_timestamp) > 0:
                    unread_at = stored_at if unread_at is None else min(unread_at, stored_at)
            yield _Lag(topic, group, behind, unread_at)

    def _lag_families(self, lags: list[_Lag]) -> Iterator[Family]:
        now = self._state.now()
        reserved = self._state.config().number("fileReservedTime") * _HOUR_MS
        ages = {lag: 0 if lag.unread_at is None else max(0, now - lag.unread_at) for lag in lags}
        labels = {lag: self._by_group(lag.topic, lag.group) for lag in lags}
        short = ("topic", "group")
        yield _gauge(
            "rocketmq_consumer_lag_messages",
            "Messages that a group has not consumed.",
            _BY_GROUP,
            [Sample(labels[lag], lag.messages) for lag in lags],
        )
        yield _gauge(
            "rocketmq_consumer_lag_latency",
            "Age of the oldest message that a group has not consumed, in milliseconds.",
            _BY_GROUP,
            [Sample(labels[lag], ages[lag]) for lag in lags],
        )
        yield _gauge(
            "rmqfast_group_lag_seconds",
            "Age of the oldest message that a group has not consumed, in seconds.",
            short,
            [Sample((lag.topic, lag.group), ages[lag] / 1000) for lag in lags],
        )
        yield _gauge(
            "rmqfast_group_retention_seconds",
            "Seconds until the oldest message that a group has not consumed may be deleted by its age.",
            short,
            [
                Sample((lag.topic, lag.group), max(0, lag.unread_at + reserved - now) / 1000)
                for lag in lags
                if lag.unread_at is not None
            ],
        )

    # Clients: what their heartbeats said.

    def _client_families(self, groups: list[ConsumerGroup]) -> Iterator[Family]:
        consumers: Counter[tuple[str, ...]] = Counter()
        for group in groups:
            mode = "pull" if group.consume_type == ACTIVELY else "push"
            system = self._is_system_group(group.name)
            for client in group.clients.values():
                consumers[group.name, *_program(client), mode, "remoting", system] += 1
        producers: Counter[tuple[str, ...]] = Counter()
        for client in self._state.producers.all_clients():
            producers[(*_program(client), "remoting")] += 1
        names = ("language", "version", "protocol_type")
        yield _gauge(
            "rocketmq_consumer_connections",
            "Online consumers.",
            ("consumer_group", "language", "version", "consume_mode", "protocol_type", "is_system"),
            [Sample(*item) for item in consumers.items()],
        )
        yield _gauge(
            "rocketmq_producer_connections", "Online producers.", names, [Sample(*item) for item in producers.items()]
        )

    def _conflicts(self, groups: list[ConsumerGroup]) -> Family:
        samples = [
            Sample((topic, group.name), count) for group in groups for topic, count in _differing_members(group).items()
        ]
        return _gauge(
            "rmqfast_group_subscription_conflict",
            "Members whose own subscription is not the one by which the broker filters for the group.",
            ("topic", "group"),
            samples,
        )

    # The store, and its disk.

    def _store_families(self) -> Iterator[Family]:
        state = self._state
        low, high = state.live.log_bounds()
        oldest = state.live.earliest_store_time(None, None)
        disk = ("storage_type", "storage_medium")
        place = ("local", "disk")
        usage = shutil.disk_usage(state.root)
        yield _gauge("rocketmq_storage_size", "Used bytes of the disk.", disk, [Sample(place, usage.used)])
        yield _gauge("rmqfast_disk_free_bytes", "Free bytes of the disk.", (), [Sample((), usage.free)])
        ratios = [Sample((name,), used_ratio(state.root / name)) for name in ("commitlog", "consumequeue", "index")]
        yield _gauge("rmqfast_disk_used_ratio", "Used part of the disk, from 0 to 1.", ("directory",), ratios)
        yield _gauge(
            "rocketmq_storage_message_reserve_time",
            "Age of the oldest message, in milliseconds.",
            disk,
            [Sample(place, max(0, state.now() - oldest))] if oldest > 0 else [],
        )
        yield _gauge(
            "rocketmq_storage_flush_behind_bytes",
            "Bytes of the log that are not flushed.",
            disk,
            [Sample(place, state.bytes_to_flush())],
        )
        # A message is listed before its put is answered.
        yield _gauge(
            "rocketmq_storage_dispatch_behind_bytes", "Bytes of the log that are not listed.", disk, [Sample(place, 0)]
        )
        yield _gauge("rmqfast_commit_log_first_offset", "First offset of the log.", (), [Sample((), low)])
        yield _gauge("rmqfast_commit_log_end_offset", "End of the log.", (), [Sample((), high)])
        yield _gauge(
            "rmqfast_store_is_harmed",
            "Whether files of the store were changed or removed while the broker runs.",
            (),
            [Sample((), float(state.data_plane.harm is not None))],
        )

    def _other_families(self) -> Iterator[Family]:
        state, config = self._state, self._state.config()
        plane = state.data_plane
        totals: Counter[str] = Counter()
        for name, _, calls, _, _ in self._counters:
            totals[name] += calls
        _, _, ranges = plane.times()
        counts = dict(ranges)
        yield Family(
            "rmqfast_put_seconds",
            Kind.HISTOGRAM,
            "Time of a put.",
            (),
            [Histogram((), _BOUNDS, tuple(counts.get(name, 0) for name in PUT_TIME_RANGES))],
        )
        yield _counter("rmqfast_put_failed_total", "Puts that failed.", (), [Sample((), totals["BROKER_PUT_FAILED"])])
        yield _counter(
            "rmqfast_pull_missed_total", "Pulls without messages.", (), [Sample((), totals["BROKER_GET_MISS"])]
        )
        yield _counter(
            "rmqfast_messages_passed_over_total",
            "Messages that cannot be read, and that consumers were led past.",
            (),
            [Sample((), plane.skipped_messages)],
        )
        yield _gauge("rmqfast_held_pulls", "Pulls that wait for messages.", (), [Sample((), plane.parked_pulls)])
        permission = config.number("brokerPermission")
        yield _gauge("rocketmq_broker_permission", "Sum of 4 (read) and 2 (write).", (), [Sample((), permission)])
        yield _gauge("rocketmq_topic_number", "Topics.", (), [Sample((), len(state.topics.topics()))])
        yield _gauge("rocketmq_consumer_group_number", "Consumer groups.", (), [Sample((), len(state.groups.groups()))])

    def _by_group(self, topic: str, group: str) -> tuple[str, ...]:
        is_system = "true" in {self._is_system(topic), self._is_system_group(group)}
        return topic, group, _word(topic.startswith(RETRY_PREFIX)), _word(is_system)

    def _is_system(self, topic: str) -> str:
        return _word(topic in self._system_topics)

    def _is_system_group(self, group: str) -> str:
        return _word(group in _BUILT_IN or group.startswith(SYSTEM_GROUP_PREFIX))


def _differing_members(group: ConsumerGroup) -> Mapping[str, int]:
    own = ({each.topic: each for each in subscriptions} for subscriptions in group.own_subscriptions.values())
    return count_differing(group.subscriptions, own)


def _program(client: ClientChannel) -> tuple[str, str]:
    """Returns language and release of a client, in the words of RocketMQ 5."""
    return (client.language or "").lower(), version_name(client.version).lower()


def _word(flag: bool) -> str:  # noqa: FBT001 - of one argument
    return "true" if flag else "false"


def _counter(name: str, text: str, labels: tuple[str, ...], samples: list[Sample]) -> Family:
    return Family(name, Kind.COUNTER, text, labels, samples)


def _gauge(name: str, text: str, labels: tuple[str, ...], samples: list[Sample]) -> Family:
    return Family(name, Kind.GAUGE, text, labels, samples)
