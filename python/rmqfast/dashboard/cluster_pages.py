"""The pages about a whole cluster: overview, brokers, topics, groups, alarms. Made of the last look at it."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from rmqfast.dashboard.history import History
from rmqfast.dashboard.look import IN_TPS, OUT_TPS, STATES, Look
from rmqfast.dashboard.page import Chart, Link, Notice, Page, Table
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


def overview(look: Look, history: History) -> Page:
    """Returns the page with what is wrong, and the longest backlogs."""
    longest = sorted(look.groups, key=lambda row: row["behind"] or 0, reverse=True)[:_TOP]
    facts = {
        "brokers": len(look.brokers),
        "topics": sum(not row["topic"].startswith("%") for row in look.topics),
        "groups": len(look.groups),
        "online_members": look.online_members,
        "alarms": len(look.alarms),
        "in_tps": sum(row["in_tps"] or 0 for row in look.brokers),
        "out_tps": sum(row["out_tps"] or 0 for row in look.brokers),
    }
    return Page(
        title="overview",
        is_of_look=True,
        facts=facts,
        charts=[rates(history)],
        notices=[*alarm_notices(look.alarms)[:_TOP], *unknown_notices(look.unknown)],
        tables=[
            Table(
                name="longest_backlogs",
                columns=("group", "state", "members", "behind", "lag_seconds"),
                rows=longest,
                links={"group": "/groups/{group}"},
            ),
            Table(name="brokers", columns=BROKER_COLUMNS, rows=look.brokers),
        ],
    )


def rates(history: History) -> Chart:
    """Returns the chart of the messages a second of the whole cluster."""
    times, series = history.of(IN_TPS, OUT_TPS)
    return Chart(name="rates", path="/charts/rates.json", times=times, series=series)


def dead_letters(look: Look) -> Page:
    """Returns the page with the groups that have dead letters."""
    table = Table(
        name="dead_letters",
        columns=("group", "dead_letters", "brokers"),
        rows=look.dead_letters,
        links={"group": "/dead-letters/{group}"},
    )
    return Page(title="dead_letters", is_of_look=True, facts={"groups": len(look.dead_letters)}, tables=[table])


def brokers(look: Look) -> Page:
    """Returns the page with the masters and slaves."""
    silent = [Notice(level="problem", title=broker, text=text) for broker, text in look.unreachable.items()]
    table = Table(name="brokers", columns=BROKER_COLUMNS, rows=look.brokers)
    return Page(title="brokers", is_of_look=True, notices=[*silent, *unknown_notices(look.unknown)], tables=[table])


def topics(look: Look, *, every: bool) -> Page:
    """Returns the page with the topics; with `every`, also retry and dead-letter topics."""
    rows = [row for row in look.topics if every or not row["topic"].startswith("%")]
    table = Table(name="topics", columns=TOPIC_COLUMNS, rows=rows, links={"topic": "/topics/{topic}"})
    links = [Link(title="create-topic", path="/changes/create-topic", is_change=True)]
    return Page(title="topics", is_of_look=True, facts={"topics": len(rows)}, links=links, tables=[table])


def groups(look: Look) -> Page:
    """Returns the page with the consumer groups, those in trouble first."""
    counts = {state: sum(row["state"] == state for row in look.groups) for state in STATES}
    table = Table(name="groups", columns=GROUP_COLUMNS, rows=look.groups, links={"group": "/groups/{group}"})
    links = [Link(title=name, path=f"/changes/{name}", is_change=True) for name in ("create-group", "clone")]
    facts = {state: count for state, count in counts.items() if count}
    return Page(title="groups", is_of_look=True, facts=facts, links=links, tables=[table])


def alarms(look: Look) -> Page:
    """Returns the page with the alarms that last."""
    notices = [*alarm_notices(look.alarms), *unknown_notices(look.unknown)]
    return Page(title="alarms", is_of_look=True, facts={"alarms": len(look.alarms)}, notices=notices)


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
