"""A cluster's metrics out of a snapshot: those of RocketMQ's exporter, and what that one lacks under `rmqfast_`.

Names, labels and meanings are the exporter's, so that dashboards and alerts made for it go on. It also lists
`rocketmq_group_dlqdiff`, `rocketmq_group_consume_tps` and `rocketmq_group_consume_total_offset`, which it never fills.

Source: RocketMQ Exporter's `RMQMetricsCollector`, `MetricsCollectTask`, `BrokerRuntimeStats`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rmqfast.admin import (
    BrokerRow,
    BrokerSnapshot,
    ConsumerConnection,
    ConsumerRunningInfo,
    ConsumeStats,
    MinuteStats,
    Snapshot,
)
from rmqfast.admin.admin_client import DLQ_PREFIX, RETRY_PREFIX
from rmqfast.admin.clusters import log_end_of
from rmqfast.exporter.runtime_metrics import runtime_families
from rmqfast.metrics import Family, Kind, Sample
from rmqfast.remoting.protocol.consumer_connection import BROADCASTING
from rmqfast.remoting.protocol.subscription_data import SubscriptionData, count_differing

_NOTHING = MinuteStats(0, 0)
#: Ordinals of RocketMQ's `MessageModel`.
_MODELS = {"BROADCASTING": "0", "CLUSTERING": "1"}
_BY_TOPIC = ("cluster", "broker", "topic")
_BY_GROUP = ("cluster", "broker", "topic", "group")
_OWN = ("cluster", "node_type", "node_id", "topic", "group")


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A snapshot of a cluster, and what members, slaves and configurations tell besides.

    Attributes:
        members: What each member of a group said of itself, by group and client id.
        slave_ends: End of each slave's log.
        reserved_hours: Hours after which each broker's messages may be deleted, by address.
    """

    snapshot: Snapshot
    members: Mapping[tuple[str, str], ConsumerRunningInfo] = field(default_factory=dict)
    slave_ends: Mapping[BrokerRow, int] = field(default_factory=dict)
    reserved_hours: Mapping[str, int] = field(default_factory=dict)

    def families(self, now: int) -> list[Family]:
        """Returns the metrics at a time in milliseconds since 1970."""
        return [
            *self._topic_families(),
            *self._group_families(now),
            *self._member_families(),
            *self._broker_families(),
            *runtime_families(self.snapshot.brokers),
            *self._own_families(now),
        ]

    def _stat(self, broker: BrokerSnapshot, name: str, key: str) -> MinuteStats:
        return (broker.stats or {}).get(name, {}).get(key, _NOTHING)

    def _topic_families(self) -> Iterator[Family]:
        offsets: dict[str, list[Sample]] = {"producer_offset": [], "topic_retry_offset": [], "topic_dlq_offset": []}
        rates: dict[str, list[Sample]] = {"producer_tps": [], "producer_message_size": []}
        for broker in self.snapshot.brokers:
            place = (broker.cluster, broker.broker_name)
            for topic, end in (broker.ends or {}).items():
                if topic.startswith(DLQ_PREFIX):
                    offsets["topic_dlq_offset"].append(Sample((*place, topic.removeprefix(DLQ_PREFIX)), end))
                elif topic.startswith(RETRY_PREFIX):
                    offsets["topic_retry_offset"].append(Sample((*place, topic), end))
                else:
                    offsets["producer_offset"].append(Sample((*place, topic), end))
                    messages, size = (self._stat(broker, f"TOPIC_PUT_{each}", topic).tps for each in ("NUMS", "SIZE"))
                    rates["producer_tps"].append(Sample((*place, topic), messages))
                    rates["producer_message_size"].append(Sample((*place, topic), size))
        yield _gauge("producer_offset", "Messages that a topic ever got.", _BY_TOPIC, offsets["producer_offset"])
        yield _gauge("topic_retry_offset", "The same of a retry topic.", _BY_TOPIC, offsets["topic_retry_offset"])
        labels = ("cluster", "broker", "group")
        yield _gauge("topic_dlq_offset", "Dead letters that a group ever got.", labels, offsets["topic_dlq_offset"])
        yield _gauge("producer_tps", "Messages stored per second.", _BY_TOPIC, rates["producer_tps"])
        yield _gauge("producer_message_size", "Bytes stored per second.", _BY_TOPIC, rates["producer_message_size"])
        producers = [
            Sample((broker.cluster, broker.broker_name, group), count)
            for broker in self.snapshot.brokers
            for group, count in (broker.producers or {}).items()
        ]
        yield _gauge("producer_count", "Online producers.", labels, producers)

    def _group_families(self, now: int) -> Iterator[Family]:
        samples: dict[str, list[Sample]] = defaultdict(list)
        behind: dict[tuple[str, str], int] = defaultdict(int)
        models = {group.group: group.message_model for group in self.snapshot.groups}
        for broker, group, stats in self._progress():
            topic = stats.rows[0].topic
            labels = (broker.cluster, broker.broker_name, topic, group)
            samples["consumer_offset"].append(Sample(labels, sum(row.consumer_offset for row in stats)))
            behind[topic, group] += stats.diff_total
            if not topic.startswith(RETRY_PREFIX):
                key = f"{topic}@{group}"
                samples["consumer_tps"].append(Sample(labels, stats.consume_tps))
                size = self._stat(broker, "GROUP_GET_SIZE", key).tps
                samples["consumer_message_size"].append(Sample(labels, size))
                samples["send_back_nums"].append(Sample(labels, self._stat(broker, "SNDBCK_PUT_NUMS", key).sum))
            latency = stats.unread_age(now)
            if latency is not None and models.get(group) != BROADCASTING:
                samples["latency"].append(Sample(labels, latency))
        yield _gauge("consumer_offset", "Messages that a group has passed.", _BY_GROUP, samples["consumer_offset"])
        yield _gauge("consumer_tps", "Messages sent to a group per second.", _BY_GROUP, samples["consumer_tps"])
        yield _gauge("consumer_message_size", "Bytes per second.", _BY_GROUP, samples["consumer_message_size"])
        yield _gauge("send_back_nums", "Messages sent back in a minute.", _BY_GROUP, samples["send_back_nums"])
        text = "Age of the oldest message that a group has not consumed, in milliseconds."
        yield _gauge("group_get_latency_by_storetime", text, _BY_GROUP, samples["latency"])
        counts = {group.group: len(group.members or ()) for group in self.snapshot.groups}
        diffs: dict[bool, list[Sample]] = {True: [], False: []}
        for (topic, group), count in behind.items():
            model = models.get(group) or "CLUSTERING"
            if model != BROADCASTING:
                labels = (group, topic, str(counts.get(group, 0)), _MODELS.get(model, "1"))
                diffs[topic.startswith(RETRY_PREFIX)].append(Sample(labels, count))
        names = ("group", "topic", "countOfOnlineConsumers", "msgModel")
        yield _gauge("group_diff", "Messages that a group has not consumed.", names, diffs[False])
        yield _gauge("group_retrydiff", "Retries that a group has not consumed.", names, diffs[True])
        online = [
            Sample(
                (
                    ",".join(member.client_addr for member in group.members),
                    ",".join(member.client_id for member in group.members),
                    group.group,
                ),
                len(group.members),
            )
            for group in self.snapshot.groups
            if group.members is not None
        ]
        yield _gauge("group_count", "Online consumers.", ("caddr", "localaddr", "group"), online)

    def _member_families(self) -> Iterator[Family]:
        addresses = {
            (group.group, member.client_id): member.client_addr
            for group in self.snapshot.groups
            for member in group.members or ()
        }
        rows = [
            ((addresses[group, client_id], client_id, group, topic), status)
            for (group, client_id), info in self.members.items()
            if (group, client_id) in addresses
            for topic, status in info.status.items()
        ]
        for name, text, attribute in (
            ("client_consume_fail_msg_count", "Messages that failed in the last hour.", "consume_failed_msgs"),
            ("client_consume_fail_msg_tps", "Messages that fail per second.", "consume_failed_tps"),
            ("client_consume_ok_msg_tps", "Messages consumed per second.", "consume_ok_tps"),
            ("client_consume_rt", "Milliseconds of a call of the listener.", "consume_rt"),
            ("client_consumer_pull_rt", "Milliseconds of a pull.", "pull_rt"),
            ("client_consumer_pull_tps", "Messages pulled per second.", "pull_tps"),
        ):
            samples = [Sample(labels, getattr(status, attribute)) for labels, status in rows]
            yield _gauge(name, text, ("clientAddr", "clientId", "group", "topic"), samples)

    def _broker_families(self) -> Iterator[Family]:
        labels = ("cluster", "brokerIP", "broker")
        puts, gets = [], []
        ends: dict[tuple[str, str], int] = {}
        for broker in self.snapshot.brokers:
            place = (broker.cluster, broker.address, broker.broker_name)
            puts.append(Sample(place, self._stat(broker, "BROKER_PUT_NUMS", broker.cluster).tps))
            gets.append(Sample(place, self._stat(broker, "BROKER_GET_NUMS", broker.cluster).tps))
            if (end := log_end_of(broker.status or {})) is not None:
                ends[broker.cluster, broker.broker_name] = end
        diffs = [
            Sample((slave.cluster, slave.address, slave.broker_name), ends[slave.cluster, slave.broker_name] - end)
            for slave, end in self.slave_ends.items()
            if (slave.cluster, slave.broker_name) in ends
        ]
        yield _gauge("broker_tps", "Messages stored per second.", labels, puts)
        yield _gauge("broker_qps", "Messages sent to consumers per second.", labels, gets)
        yield _gauge("broker_commitlog_diff", "Bytes that a slave is behind.", labels, diffs)

    # What RocketMQ's exporter lacks, with the names and labels of our brokers.

    def _own_families(self, now: int) -> Iterator[Family]:
        lags, ages, left = [], [], []
        for broker, group, stats in self._progress():
            labels = (broker.cluster, "broker", broker.broker_name, stats.rows[0].topic, group)
            lags.append(Sample(labels, stats.diff_total))
            age = stats.unread_age(now)
            if age is not None:
                ages.append(Sample(labels, age / 1000))
                hours = self.reserved_hours.get(broker.address)
                if hours is not None and age > 0:
                    left.append(Sample(labels, max(0, hours * 3600 - age / 1000)))
        for name, text, samples in (
            ("lag_messages", "Messages that a group has not consumed.", lags),
            ("lag_seconds", "Age of the oldest message that a group has not consumed, in seconds.", ages),
            ("retention_seconds", "Seconds until that message may be deleted by its age.", left),
        ):
            yield Family(f"rmqfast_group_{name}", Kind.GAUGE, text, _OWN, samples)
        yield self._conflicts()
        up = [
            Sample((broker.cluster, "broker", broker.broker_name), float(broker.status is not None))
            for broker in self.snapshot.brokers
        ]
        yield Family("rmqfast_up", Kind.GAUGE, "Whether a broker answers.", ("cluster", "node_type", "node_id"), up)

    def _conflicts(self) -> Family:
        samples = [
            Sample((broker.cluster, "broker", broker.broker_name, topic, group), count)
            for broker in self.snapshot.brokers
            for group, known in (broker.consumers or {}).items()
            for topic, count in self._differing(group, known).items()
        ]
        text = "Members whose own subscription is not the one by which the broker filters for the group."
        return Family("rmqfast_group_subscription_conflict", Kind.GAUGE, text, _OWN, samples)

    def _differing(self, group: str, known: ConsumerConnection) -> dict[str, int]:
        """Returns for each topic how many members subscribe differently. Empty if no member said what it wants."""
        own: list[Mapping[str, SubscriptionData]] = (
            list(known.member_subscriptions.values())
            if known.member_subscriptions is not None
            else [self.members[group, each].subscriptions for each in known.client_ids if (group, each) in self.members]
        )
        return count_differing(known.subscriptions, own) if own else {}

    def _progress(self) -> Iterator[tuple[BrokerSnapshot, str, ConsumeStats]]:
        """Yields the progress of each group in each topic of each broker, except in topics without queues."""
        for broker in self.snapshot.brokers:
            for group, topics in (broker.progress or {}).items():
                for stats in topics:
                    if stats.rows:
                        yield broker, group, stats


def _gauge(name: str, text: str, labels: tuple[str, ...], samples: list[Sample]) -> Family:
    return Family(f"rocketmq_{name}", Kind.GAUGE, text, labels, samples)
