"""The pages about a whole cluster: overview, brokers, topics, groups, alarms. Made of the last look at it."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from rmqfast.dashboard.look import STATES, Look
from rmqfast.dashboard.page import Notice, Page, Table
from rmqfast.doctor import Alarm

#: Rows and notices of the overview.
_TOP = 10
GROUP_COLUMNS = ("group", "state", "members", "consume_type", "message_model", "consume_tps", "behind", "lag_seconds")
TOPIC_COLUMNS = ("topic", "brokers", "read_queues", "write_queues", "perm", "messages")
BROKER_COLUMNS = (
    "broker",
    "role",
    "cluster",
    "address",
    "version",
    "in_tps",
    "out_tps",
    "disk_used",
    "log_end",
    "behind_bytes",
)


def overview(look: Look) -> Page:
    """Returns the page with what is wrong, and the longest backlogs."""
    longest = sorted(look.groups, key=lambda row: row["behind"] or 0, reverse=True)[:_TOP]
    snapshot = look.examination.snapshot
    facts = {
        "brokers": len(look.brokers),
        "topics": sum(not row["topic"].startswith("%") for row in look.topics),
        "groups": len(look.groups),
        "online_members": sum(len(group.members or ()) for group in snapshot.groups),
        "alarms": len(look.alarms),
        "in_tps": sum(row["in_tps"] or 0 for row in look.brokers),
        "out_tps": sum(row["out_tps"] or 0 for row in look.brokers),
    }
    return Page(
        title="overview",
        facts=facts,
        notices=[*alarm_notices(look.alarms)[:_TOP], *unknown_notices(look.unknown)],
        tables=[
            Table(
                name="longest_backlogs",
                columns=("group", "state", "members", "behind", "lag_seconds"),
                rows=longest,
                links={"group": "/groups/"},
            ),
            Table(name="brokers", columns=BROKER_COLUMNS, rows=look.brokers),
        ],
    )


def brokers(look: Look) -> Page:
    """Returns the page with the masters and slaves."""
    silent = [
        Notice(level="problem", title=f"{row.broker_name} {row.address}", text=text)
        for row, text in look.examination.unreachable.items()
    ]
    table = Table(name="brokers", columns=BROKER_COLUMNS, rows=look.brokers)
    return Page(title="brokers", notices=[*silent, *unknown_notices(look.unknown)], tables=[table])


def topics(look: Look, *, every: bool) -> Page:
    """Returns the page with the topics; with `every`, also retry and dead-letter topics."""
    rows = [row for row in look.topics if every or not row["topic"].startswith("%")]
    table = Table(name="topics", columns=TOPIC_COLUMNS, rows=rows, links={"topic": "/topics/"})
    return Page(title="topics", facts={"topics": len(rows)}, tables=[table])


def groups(look: Look) -> Page:
    """Returns the page with the consumer groups, those in trouble first."""
    counts = {state: sum(row["state"] == state for row in look.groups) for state in STATES}
    table = Table(name="groups", columns=GROUP_COLUMNS, rows=look.groups, links={"group": "/groups/"})
    return Page(title="groups", facts={state: count for state, count in counts.items() if count}, tables=[table])


def alarms(look: Look) -> Page:
    """Returns the page with the alarms that last."""
    notices = [*alarm_notices(look.alarms), *unknown_notices(look.unknown)]
    return Page(title="alarms", facts={"alarms": len(look.alarms)}, notices=notices)


def alarm_notices(alarms: Sequence[Alarm]) -> list[Notice]:
    return [
        Notice(
            level=alarm.finding.level.value,
            title=f"{alarm.finding.name}: {alarm.finding.subject}",
            text=alarm.finding.evidence,
            next_step=alarm.finding.next_step,
            path=path_of(alarm.finding.subject),
        )
        for alarm in alarms
    ]


def unknown_notices(unknown: Sequence[str]) -> list[Notice]:
    return [Notice(level="unknown", title="not_told", text=text) for text in unknown]


def path_of(subject: str) -> str | None:
    """Returns the page of a finding's subject, as `group billing in orders`."""
    kind, _, name = subject.partition(" ")
    pages = {"group": "/groups/", "topic": "/topics/"}
    return pages[kind] + quote(name.partition(" in ")[0]) if kind in pages else None
