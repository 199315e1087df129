"""A look at a cluster, as rows of tables. They are made once, however many pages show them."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
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
_HOUR = 3600
#: States of groups, the worst first.
STATES = CONFLICT, OFFLINE, BEHIND, FINE, IDLE = "conflict", "offline", "behind", "fine", "idle"


class Look:
    """The rows and small facts of one look at a cluster, for pages. The answers behind them are not kept.

    Attributes:
        groups: The groups, those in trouble first.
        topics: All topics, also those for retries and dead letters.
        brokers: The masters and slaves.
        masters: Names and addresses of the masters.
        unreachable: Errors of brokers that do not answer, by name and address.
        online_members: Number of members online in all groups.
        retention: Seconds until the first unread message of a group may be deleted, for groups with a backlog.
        alarms: Alarms, oldest first.
        unknown: Parts that were not told, and why.
    """

    def __init__(self, examination: Examination, alarms: Sequence[Alarm], unknown: Sequence[str]) -> None:
        snapshot, statuses = examination.snapshot, examination.statuses
        ends = {row.broker_name: log_end_of(status) for row, status in statuses.items() if row.is_master}
        self.alarms: Final[Sequence[Alarm]] = alarms
        self.unknown: Sequence[str] = unknown
        self.groups: Final = sorted(
            (_group_row(examination, group) for group in snapshot.groups),
            key=lambda row: (STATES.index(row["state"]), row["group"]),
        )
        self.topics: Final = [_topic_row(examination, topic) for topic in snapshot.topics]
        self.brokers: Final = [_broker_row(examination, row, ends.get(row.broker_name)) for row in examination.brokers]
        self.masters: Final = [(row.broker_name, row.address) for row in examination.brokers if row.is_master]
        self.unreachable: Final = {
            f"{row.broker_name} {row.address}": text for row, text in examination.unreachable.items()
        }
        self.online_members: Final = sum(len(group.members or ()) for group in snapshot.groups)
        self.retention: Final = _retention_of(examination)
        self._readers: Final = _readers_of(examination)

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

    def readers_of(self, topic: str) -> Collection[str]:
        """Returns the groups that have offsets in a topic, or subscribe to it."""
        return self._readers.get(topic, ())


def backlog_of(group: str) -> str:
    """Returns the name of the figure of a group's backlog."""
    return f"behind:{group}"


def _readers_of(examination: Examination) -> dict[str, set[str]]:
    readers: dict[str, set[str]] = {}
    for _, group, stats in examination.progress():
        readers.setdefault(stats.rows[0].topic, set()).add(group)
    for broker in examination.snapshot.brokers:
        for group, known in (broker.consumers or {}).items():
            for topic in known.subscriptions:
                readers.setdefault(topic, set()).add(group)
    return readers


def _retention_of(examination: Examination) -> dict[str, float]:
    left: dict[str, float] = {}
    for broker, group, stats in examination.progress():
        hours = examination.config_of(broker).get("fileReservedTime", "")
        lag = lag_of(stats, examination.now)
        if lag and hours.isdecimal():
            left[group] = min(left.get(group, math.inf), max(0.0, int(hours) * _HOUR - lag))
    return left


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
