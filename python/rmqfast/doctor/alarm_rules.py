"""Rules by which a cluster that is watched raises alarms: the doctor's checks, and limits that its owner sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rmqfast.admin import ConsumeStats
from rmqfast.cells import duration_text, time_text
from rmqfast.doctor.broker_checks import find_full_disks, find_unreachable_brokers
from rmqfast.doctor.examination import Examination
from rmqfast.doctor.finding import Finding, Level
from rmqfast.doctor.group_checks import (
    find_dead_letters,
    find_duplicate_clients,
    find_expiring_backlogs,
    find_offline_groups,
    find_subscription_conflicts,
)

CHECKS = (
    find_unreachable_brokers,
    find_full_disks,
    find_subscription_conflicts,
    find_duplicate_clients,
    find_expiring_backlogs,
    find_offline_groups,
    find_dead_letters,
)


@dataclass(frozen=True, kw_only=True)
class AlarmRules:
    """Limits beyond which a watched cluster raises alarms.

    Some alarms need no limit: subscription conflicts, duplicate client ids, backlogs that expire, groups offline with a
    backlog, dead letters of the last day, full disks, brokers that do not answer, and groups that do not move.

    Args:
        lag: Messages that a group may be behind in a topic. Default: any number.
        lag_seconds: Age that a group's oldest unread message may have. Default: any.
        stalled_seconds: Time for which a group with a backlog may consume nothing.
        silent_seconds: For topics that always get messages: the time for which each may get none.

    Example:
        >>> from rmqfast.doctor import AlarmRules
        >>> AlarmRules(lag=10_000, silent_seconds={"orders": 600}).lag
        10000
    """

    lag: int | None = None
    lag_seconds: float | None = None
    stalled_seconds: float = 120.0
    silent_seconds: Mapping[str, float] = field(default_factory=dict)


class AlarmHistory:
    """Judges looks at a cluster by rules, some of which need the looks before."""

    def __init__(self, rules: AlarmRules) -> None:
        self._rules = rules
        #: Offset of a group in a topic, and since when it is there.
        self._offsets: dict[tuple[str, str], tuple[int, int]] = {}
        #: Messages that a topic ever got, and since when there is no other.
        self._ends: dict[str, tuple[int, int]] = {}

    def findings(self, examination: Examination) -> list[Finding]:
        """Returns what is wrong, and remembers the look."""
        found = [each for check in CHECKS for each in check(examination) if each.level is Level.PROBLEM]
        return [*found, *self._groups(examination), *self._topics(examination)]

    def _groups(self, examination: Examination) -> Iterator[Finding]:
        progress: dict[tuple[str, str], list[ConsumeStats]] = defaultdict(list)
        for _, group, stats in examination.progress():
            progress[group, stats.rows[0].topic].append(stats)
        before, self._offsets = self._offsets, {}
        online = {group.group for group in examination.snapshot.groups if group.members}
        for (group, topic), told in sorted(progress.items()):
            stats = ConsumeStats.of_brokers(told)
            offset = sum(row.consumer_offset for row in stats)
            same, since = before.get((group, topic), (None, 0))
            self._offsets[group, topic] = offset, since if same == offset and stats.diff_total else examination.now
            if not examination.is_broadcasting(group):
                yield from self._find_lags(group, topic, stats, examination.now)
                # A group without members is an alarm of its own.
                if group in online:
                    yield from self._find_stall(group, topic, stats, examination.now)

    def _find_lags(self, group: str, topic: str, stats: ConsumeStats, now: int) -> Iterator[Finding]:
        rules, subject = self._rules, f"group {group} in {topic}"
        step = f"`rmqfast explain --group {group}`; start more members, if there are more queues than members"
        if rules.lag is not None and stats.diff_total > rules.lag:
            evidence = f"{stats.diff_total:,} messages are unread, and {rules.lag:,} may be"
            yield Finding(name="lag", subject=subject, evidence=evidence, next_step=step)
        unread = stats.unread_timestamp
        if rules.lag_seconds is not None and unread and now - unread > rules.lag_seconds * 1000:
            limit = duration_text(rules.lag_seconds * 1000)
            evidence = f"the oldest unread message is {duration_text(now - unread)} old, and {limit} are allowed"
            yield Finding(name="time-lag", subject=subject, evidence=evidence, next_step=step)

    def _find_stall(self, group: str, topic: str, stats: ConsumeStats, now: int) -> Iterator[Finding]:
        since = self._offsets[group, topic][1]
        if stats.diff_total and now - since > self._rules.stalled_seconds * 1000:
            yield Finding(
                name="group-stalled",
                subject=f"group {group} in {topic}",
                evidence=f"{stats.diff_total:,} messages are unread, members are online, and none has been consumed "
                f"since {time_text(since)}",
                next_step=f"`rmqfast group stacks {group}` shows where the listeners wait",
            )

    def _topics(self, examination: Examination) -> Iterator[Finding]:
        ends = _ends_of(examination)
        for topic, limit in self._rules.silent_seconds.items():
            end = ends.get(topic)
            if end is None:
                continue
            same, since = self._ends.get(topic, (None, 0))
            since = since if same == end else examination.now
            self._ends[topic] = end, since
            if examination.now - since > limit * 1000:
                yield Finding(
                    name="topic-silent",
                    subject=f"topic {topic}",
                    evidence=f"it has got no message since {time_text(since)}",
                    next_step=f"`rmqfast topic producers {topic} --group PRODUCERS` shows who is online",
                )


def _ends_of(examination: Examination) -> dict[str, int]:
    """Returns how many messages each topic ever got. RocketMQ's brokers tell it of topics that groups read."""
    ends: dict[str, int] = defaultdict(int)
    for broker in examination.snapshot.brokers:
        told = dict(broker.ends or {})
        if broker.ends is None:
            rows = {
                row.queue: row.broker_offset
                for topics in (broker.progress or {}).values()
                for stats in topics
                for row in stats
            }
            for queue, end in rows.items():
                told[queue.topic] = told.get(queue.topic, 0) + end
        for topic, end in told.items():
            ends[topic] += end
    return ends
