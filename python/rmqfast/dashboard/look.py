"""A look at a cluster, as rows of tables. They are made once, however many pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from rmqfast.admin import BrokerRow, ConsumeStats, GroupSummary, TopicSummary
from rmqfast.admin.admin_client import DLQ_PREFIX
from rmqfast.admin.clusters import log_end_of
from rmqfast.dashboard.page import Row
from rmqfast.doctor import Alarm
from rmqfast.doctor.examination import Examination

#: Names of figures over time; those of groups have a colon.
IN_TPS, OUT_TPS = "in_tps", "out_tps"
#: States of groups, the worst first.
STATES = CONFLICT, OFFLINE, BEHIND, FINE, IDLE = "conflict", "offline", "behind", "fine", "idle"


class Look:
    """The facts of one look, and the alarms that last.

    Attributes:
        examination: The facts.
        alarms: Alarms, oldest first.
        unknown: Parts that were not told, and why.
    """

    def __init__(self, examination: Examination, alarms: Sequence[Alarm], unknown: Sequence[str]) -> None:
        self.examination: Final[Examination] = examination
        self.alarms: Final[Sequence[Alarm]] = alarms
        self.unknown: Sequence[str] = unknown

    def make_rows(self) -> None:
        """Makes the rows of all tables."""
        _ = self.groups, self.topics, self.brokers

    @cached_property
    def groups(self) -> list[Row]:
        """The groups, those in trouble first."""
        rows = [_group_row(self.examination, group) for group in self.examination.snapshot.groups]
        return sorted(rows, key=lambda row: (STATES.index(row["state"]), row["group"]))

    @cached_property
    def topics(self) -> list[Row]:
        """All topics, also those for retries and dead letters."""
        return [_topic_row(self.examination, topic) for topic in self.examination.snapshot.topics]

    @cached_property
    def brokers(self) -> list[Row]:
        """The masters and slaves."""
        statuses = self.examination.statuses
        ends = {row.broker_name: log_end_of(status) for row, status in statuses.items() if row.is_master}
        return [_broker_row(self.examination, row, ends.get(row.broker_name)) for row in self.examination.brokers]

    @cached_property
    def dead_letters(self) -> list[Row]:
        """The groups that have dead letters, those with most first."""
        rows = [
            {"group": row["topic"].removeprefix(DLQ_PREFIX), "dead_letters": row["messages"], "brokers": row["brokers"]}
            for row in self.topics
            if row["topic"].startswith(DLQ_PREFIX)
        ]
        return sorted(rows, key=lambda row: (-(row["dead_letters"] or 0), row["group"]))

    def figures(self) -> dict[str, float | None]:
        """Returns the figures that charts show: rates of the cluster, and each group's backlog."""
        return {
            IN_TPS: sum(row["in_tps"] or 0 for row in self.brokers),
            OUT_TPS: sum(row["out_tps"] or 0 for row in self.brokers),
            **{backlog_of(row["group"]): row["behind"] for row in self.groups},
        }

    def readers_of(self, topic: str) -> set[str]:
        """Returns the groups that have offsets in a topic, or subscribe to it."""
        readers = {group for _, group, stats in self.examination.progress() if stats.rows[0].topic == topic}
        for broker in self.examination.snapshot.brokers:
            readers |= {group for group, known in (broker.consumers or {}).items() if topic in known.subscriptions}
        return readers


def backlog_of(group: str) -> str:
    """Returns the name of the figure of a group's backlog."""
    return f"behind:{group}"


def _group_row(examination: Examination, group: GroupSummary) -> Row:
    stats = group.progress or None
    members = None if group.members is None else len(group.members)
    return {
        "group": group.group,
        "state": _state(group, stats),
        "members": members,
        "consume_type": group.consume_type,
        "message_model": group.message_model,
        "consume_tps": None if stats is None else round(stats.consume_tps, 2),
        "behind": None if stats is None else stats.diff_total,
        "lag_seconds": lag_of(stats, examination.now),
    }


def lag_of(stats: ConsumeStats | None, now: int) -> float | None:
    """Returns the age of the oldest unread message in seconds, 0 without one; `None` if it is not told."""
    age = None if stats is None else stats.unread_age(now)
    return None if age is None else age / 1000


def _state(group: GroupSummary, stats: ConsumeStats | None) -> str:
    behind = stats.diff_total if stats else 0
    if group.conflicts:
        return CONFLICT
    if group.members == () and behind > 0:
        return OFFLINE
    if behind > 0:
        return BEHIND
    return FINE if group.members else IDLE


def _topic_row(examination: Examination, topic: TopicSummary) -> Row:
    ends = [broker.ends for broker in examination.snapshot.brokers if broker.ends is not None]
    return {
        "topic": topic.topic,
        "brokers": list(topic.brokers),
        "read_queues": topic.read_queues,
        "write_queues": topic.write_queues,
        "perm": topic.perm,
        # RocketMQ's brokers do not tell it in a snapshot.
        "messages": sum(end.get(topic.topic, 0) for end in ends) if ends else None,
    }


def _broker_row(examination: Examination, row: BrokerRow, master_end: int | None) -> Row:
    status = examination.statuses.get(row, {})
    end = log_end_of(status)
    used = status.get("commitLogDiskRatio")
    return {
        "broker": row.broker_name,
        "role": "master" if row.is_master else f"slave {row.broker_id}",
        "cluster": row.cluster,
        "address": row.address,
        "version": status.get("brokerVersionDesc"),
        "in_tps": _rate(status.get("putTps")),
        # Misspelled in 4.9.
        "out_tps": _rate(status.get("getTransferedTps") or status.get("getTransferredTps")),
        "disk_used": None if used is None else float(used),
        "log_end": end,
        "behind_bytes": None if row.is_master or end is None or master_end is None else master_end - end,
    }


def _rate(rates: str | None) -> float | None:
    # The first of the three rates is that of the last ten seconds.
    return float(rates.split()[0]) if rates and rates.split() else None
