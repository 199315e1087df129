"""Consumer groups as rows: their members, their backlog in messages and in time, and conflicts."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rmqfast.admin import ConsumeStats, GroupSummary
from rmqfast.cli.output import Form, Row, write

COLUMNS = (
    "group",
    "members",
    "consume_type",
    "message_model",
    "consume_tps",
    "diff_total",
    "lag_seconds",
    "conflicts",
)


def write_groups(output: Form, groups: Iterable[GroupSummary]) -> None:
    """Writes the columns of mqadmin's consumerProgress for each group, and ours. Unknown values are None."""
    now = time.time_ns() // 1_000_000
    write(output, COLUMNS, [[_row(group, now) for group in groups]])


def _row(group: GroupSummary, now: int) -> Row:
    members = None if group.members is None else len(group.members)
    # Without offsets there is no backlog: the group may start at either end.
    stats = group.progress or None
    figures = (None, None, None) if stats is None else (stats.consume_tps, stats.diff_total, _lag(stats, now))
    conflicts = None if group.conflicts is None else [conflict.topic for conflict in group.conflicts]
    return [group.group, members, group.consume_type, group.message_model, *figures, conflicts]


def _lag(stats: ConsumeStats, now: int) -> float | None:
    """Returns the age of the oldest unread message in seconds, 0 without one."""
    age = stats.unread_age(now)
    return None if age is None else round(age / 1000, 1)
