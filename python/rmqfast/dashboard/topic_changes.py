"""Changes of topics and groups: made, and deleted once their name is typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rmqfast.admin import Admin
from rmqfast.arguments import integer
from rmqfast.dashboard.change import Effect, Values, names_of, number_field, text_field
from rmqfast.dashboard.look import Look
from rmqfast.dashboard.page import Field, Table
from rmqfast.errors import ArgumentError, ResponseError
from rmqfast.remoting import ResponseCode


class CreateTopic:
    """Creates a topic on all masters, or sets its queues and rights."""

    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        del look
        return [text_field("topic", values), number_field("queues", values, 4), number_field("perm", values, 6)]

    def preview(self, admin: Admin, values: Values) -> Effect:
        queues, perm = _number(values, "queues"), _number(values, "perm")
        brokers = [row.broker_name for row in admin.clusters.brokers() if row.is_master]
        try:
            known = {data.broker_name: data for data in admin.topics.route(values["topic"]).queue_datas}
        except ResponseError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            known = {}
        rows = [
            {
                "broker": broker,
                "before": f"{known[broker].write_queue_nums} / {known[broker].perm}" if broker in known else None,
                "after": f"{queues} / {perm}",
            }
            for broker in sorted(brokers)
        ]
        word = "change" if known else "be made"
        return Effect(
            text=f"the topic {values['topic']} would {word} on {len(rows)} brokers: queues / rights",
            tables=[Table(name="brokers", columns=("broker", "before", "after"), rows=rows)],
        )

    def make(self, admin: Admin, values: Values) -> Effect:
        admin.create_topic(values["topic"], _number(values, "queues"), perm=_number(values, "perm"))
        return Effect(text=f"the topic {values['topic']} is on all masters")


class DeleteTopic:
    """Deletes a topic with its messages."""

    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        return [text_field("topic", values, names_of(look, "topic"))]

    def preview(self, admin: Admin, values: Values) -> Effect:
        topic = values["topic"]
        # Brokers report success when they delete a topic that does not exist.
        rows = admin.topics.status(topic)
        groups = admin.groups.of_topic(topic)
        messages = sum(row.max_offset - row.min_offset for row in rows)
        return Effect(
            text=f"the topic {topic} would be deleted with {messages} messages",
            facts={"queues": len(rows), "stored_messages": messages, "groups": groups},
            typed=topic,
        )

    def make(self, admin: Admin, values: Values) -> Effect:
        admin.topics.delete(values["topic"])
        return Effect(text=f"the topic {values['topic']} is deleted")


class CreateGroup:
    """Creates a group on all masters, or sets its retries."""

    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        del look
        return [
            text_field("group", values),
            number_field("retry_max_times", values, 16),
            number_field("retry_queue_nums", values, 1),
        ]

    def preview(self, admin: Admin, values: Values) -> Effect:
        settings, known = _settings(values), admin.groups.all().get(values["group"])
        rows = [
            {"name": name, "before": None if known is None else getattr(known, name), "after": value}
            for name, value in settings.items()
        ]
        word = "be made" if known is None else "change"
        return Effect(
            text=f"the group {values['group']} would {word}",
            tables=[Table(name="settings", columns=("name", "before", "after"), rows=rows)],
        )

    def make(self, admin: Admin, values: Values) -> Effect:
        group, settings = values["group"], _settings(values)
        if group in admin.groups.all():
            # Its other settings stay.
            admin.groups.update(group, **settings)
        else:
            admin.create_group(group, **settings)
        return Effect(text=f"the group {group} is on all masters")


class DeleteGroup:
    """Deletes a group with its offsets, retries and dead letters."""

    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        return [text_field("group", values, names_of(look, "group"))]

    def preview(self, admin: Admin, values: Values) -> Effect:
        group = values["group"]
        snapshot = admin.snapshot(tables=("groups", "progress"), members=True)
        found = next((each for each in snapshot.groups if each.group == group), None)
        if found is None:
            raise ArgumentError(f"group: there is no group {group}")
        members = [member.client_id for member in found.members or ()]
        facts = {"online_members": members, "behind": found.progress.diff_total if found.progress else 0}
        return Effect(
            text=f"the group {group} would be deleted with its offsets, its retries and its dead letters",
            facts=facts,
            typed=group,
        )

    def make(self, admin: Admin, values: Values) -> Effect:
        admin.groups.delete(values["group"], remove_offsets=True)
        return Effect(text=f"the group {values['group']} is deleted")


def _number(values: Values, name: str) -> int:
    text = values[name]
    if not text.isdecimal():
        raise ArgumentError(f"{name}: expected a number, got {text[:60]!r}")
    return integer(name, int(text[:10]), 0)


def _settings(values: Values) -> dict[str, Any]:
    return {name: _number(values, name) for name in ("retry_max_times", "retry_queue_nums")}
