"""The pages about one topic and one group. They ask the cluster, and show what it tells now."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from rmqfast.admin import Admin, Explanation, QueueFacts, SubscriptionFacts, TopicOffset
from rmqfast.client.consumer.subscription import expression_of
from rmqfast.dashboard.cluster_pages import GROUP_COLUMNS
from rmqfast.dashboard.history import History
from rmqfast.dashboard.look import Look, backlog_of
from rmqfast.dashboard.page import Chart, Link, Notice, Page, Row, Table
from rmqfast.doctor import Diagnosis
from rmqfast.message import MessageQueue


def topic(admin: Admin, look: Look, name: str) -> Page:
    """Returns the page of a topic: its queues, and the groups that read it.

    Raises:
        ResponseError: 17, the topic does not exist.
    """
    offsets = admin.topics.status(name)
    readers = look.readers_of(name)
    messages = sum(row.max_offset - row.min_offset for row in offsets)
    return Page(
        title="topic",
        subject=name,
        facts={"queues": len(offsets), "stored_messages": messages},
        links=[
            Link(title="messages", path=f"/messages?{urlencode({'topic': name})}"),
            Link(title="create-topic", path=f"/changes/create-topic?{urlencode({'topic': name})}", is_change=True),
            Link(title="delete-topic", path=f"/changes/delete-topic?{urlencode({'topic': name})}", is_change=True),
        ],
        tables=[
            Table(
                name="queues",
                columns=("broker", "queue", "first_offset", "end_offset", "stored_messages", "last_stored"),
                rows=[_queue_row(row) for row in offsets],
            ),
            Table(
                name="groups",
                columns=GROUP_COLUMNS,
                rows=[row for row in look.groups if row["group"] in readers],
                links={"group": "/groups/{group}"},
            ),
        ],
    )


def _queue_row(row: TopicOffset) -> Row:
    return {
        "broker": row.broker_name,
        "queue": row.queue_id,
        "first_offset": row.min_offset,
        "end_offset": row.max_offset,
        "stored_messages": row.max_offset - row.min_offset,
        "last_stored": row.last_update_timestamp or None,
    }


def group(admin: Admin, look: Look, history: History, name: str) -> Page:
    """Returns the page of a group: conflicts, members, and what happens to a message in each queue.

    Raises:
        ResponseError: 17, no member of the group ever connected.
    """
    explanation = admin.explain(name)
    losing = _losing_queues(explanation.subscriptions)
    facts = next((row for row in look.groups if row["group"] == name), {})
    return Page(
        title="group",
        subject=name,
        facts={
            **{key: facts.get(key) for key in GROUP_COLUMNS[1:]},
            "retention_seconds": look.retention.get(name),
        },
        notices=[*_conflicts(explanation, losing), *_sentences(explanation)],
        links=_group_links(name, explanation, has_letters=any(row["group"] == name for row in look.dead_letters)),
        charts=[backlog(history, name)],
        tables=[
            Table(
                name="queues",
                columns=(
                    "topic",
                    "broker",
                    "queue",
                    "owner",
                    "offset",
                    "first_offset",
                    "end_offset",
                    "behind",
                    "state",
                ),
                rows=[_progress_row(part.queue, part.sentence, losing) for part in explanation.parts if part.queue],
                links={"topic": "/topics/{topic}", "queue": "/messages?topic={topic}"},
            ),
            Table(
                name="subscriptions",
                columns=("topic", "member", "subscription", "queues", "state"),
                rows=[_subscription_row(each) for each in explanation.subscriptions],
                links={"topic": "/topics/{topic}"},
            ),
        ],
    )


def backlog(history: History, name: str) -> Chart:
    """Returns the chart of a group's backlog."""
    times, series = history.of(backlog_of(name))
    path = f"/charts/backlog.json?{urlencode({'group': name})}"
    return Chart(name="backlog", path=path, times=times, series={"behind": series[backlog_of(name)]})


def _group_links(name: str, explanation: Explanation, *, has_letters: bool) -> list[Link]:
    topics = sorted({part.queue.queue.topic for part in explanation.parts if part.queue is not None})
    named = [topic for topic in topics if not topic.startswith("%")]
    wanted = {"group": name, **({"topic": named[0]} if len(named) == 1 else {})}
    links = [Link(title="dead_letters", path=f"/dead-letters/{quote(name, safe='')}")] if has_letters else []
    links += [
        Link(title=change, path=f"/changes/{change}?{urlencode(wanted)}", is_change=True)
        for change in ("reset", "skip", "clone")
    ]
    only = urlencode({"group": name})
    return [*links, Link(title="delete-group", path=f"/changes/delete-group?{only}", is_change=True)]


def diagnosis_page(diagnosis: Diagnosis) -> Page:
    """Returns the page with what the doctor found."""
    found = [
        Notice(
            level=each.level.value,
            title=f"{each.name}: {each.subject}",
            text=each.evidence,
            next_step=each.next_step,
        )
        for each in diagnosis.findings
    ]
    unknown = [Notice(level="unknown", title="not_told", text=each) for each in diagnosis.unknown]
    return Page(title="doctor", facts={"findings": len(found)}, notices=[*found, *unknown])


def _conflicts(explanation: Explanation, losing: set[MessageQueue]) -> list[Notice]:
    notices: list[Notice] = []
    for conflict in explanation.conflicts:
        wishes = ", ".join(f"{member}: {expression}" for member, expression in conflict.expressions.items())
        queues = [f"{each.broker_name}:{each.queue_id}" for each in sorted(losing) if each.topic == conflict.topic]
        named = f"; {len(queues)} queues lose messages: {', '.join(queues)}" if queues else ""
        notices.append(
            Notice(
                level="problem",
                title="subscription-conflict",
                text=f"{conflict.topic}: {wishes}{named}",
                next_step="let all members subscribe alike, or give each subscription a group of its own",
            )
        )
    return notices


def _sentences(explanation: Explanation) -> list[Notice]:
    """Returns the other sentences of a group's explanation. Those about conflicts are notices already."""
    conflicts = {f"{conflict}: messages get lost" for conflict in explanation.conflicts}
    level = "problem" if explanation.has_problem and not conflicts else "note"
    sentences = [each for each in explanation.sentences if each not in conflicts]
    # The notice of a conflict has its next step already.
    step = "" if conflicts else explanation.next_step or ""
    return [Notice(level=level, title="explain", text="; ".join(sentences), next_step=step)]


def _losing_queues(subscriptions: Sequence[SubscriptionFacts]) -> set[MessageQueue]:
    """Returns the queues whose owner wants other messages than its brokers give."""
    return {queue for each in subscriptions if each.differs for queue in each.queues or ()}


def _progress_row(facts: QueueFacts, sentence: str, losing: set[MessageQueue]) -> Row:
    queue = facts.queue
    return {
        "topic": queue.topic,
        "broker": queue.broker_name,
        "queue": queue.queue_id,
        "owner": facts.owner,
        "offset": facts.consumer_offset,
        "first_offset": facts.min_offset,
        "end_offset": facts.max_offset,
        "behind": facts.behind,
        "state": "loses messages" if queue in losing else sentence,
    }


def _subscription_row(each: SubscriptionFacts) -> Row:
    return {
        "topic": each.topic,
        "member": each.client_id,
        "subscription": expression_of(each.subscription) if each.problem is None else None,
        "queues": None if each.queues is None else [f"{q.broker_name}:{q.queue_id}" for q in each.queues],
        "state": each.problem
        or ("differs" if each.differs else "kept by brokers" if each.client_id is None else "fine"),
    }
