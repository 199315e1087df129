"""Changes of topics and groups: made, and deleted once their name is typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rmqfast.admin import Admin
from rmqfast.dashboard.change import Change, Effect, Values, names_of, number_field, text_field
from rmqfast.dashboard.look import Look
from rmqfast.dashboard.page import Field, Table
from rmqfast.errors import ArgumentError, ClientError, ResponseError
from rmqfast.remoting import ResponseCode

_MOST_DIGITS = 6


class CreateTopic(Change):
    """Creates a topic on all masters, or changes its queues and rights where it is."""

    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        found = next((row for row in look.topics if row["topic"] == values.get("topic")), None)
        brokers = len(found["brokers"]) if found else 1
        known = {"queues": 4, "read_queues": 4, "perm": 6}
        if found is not None:
            # Of all brokers together; they rarely differ.
            known["queues"] = found["write_queues"] // brokers
            known["read_queues"] = found["read_queues"] // brokers
            known["perm"] = known["perm"] if found["perm"] is None else found["perm"]
        return [text_field("topic", values), *(number_field(name, values, value) for name, value in known.items())]

    def preview(self, admin: Admin, values: Values) -> Effect:
        settings, known = self._settings(values), _queues_of(admin, values["topic"])
        brokers = sorted(known) or [row.broker_name for row in admin.clusters.brokers() if row.is_master]
        after = " / ".join(map(str, settings.values()))
        rows = [
            {
                "broker": broker,
                "before": " / ".join(map(str, known[broker])) if broker in known else None,
                "after": after,
            }
            for broker in sorted(brokers)
        ]
        word = "change" if known else "be made"
        return Effect(
            text=f"the topic {values['topic']} would {word} on {len(rows)} brokers: queues, read queues, rights",
            tables=[Table(name="brokers", columns=("broker", "before", "after"), rows=rows)],
        )

    def make(self, admin: Admin, values: Values) -> Effect:
        topic, settings = values["topic"], self._settings(values)
        if _queues_of(admin, topic):
            # Its other settings stay.
            admin.topics.update(topic, **settings)
            return Effect(text=f"the topic {topic} is changed")
        admin.create_topic(topic, **settings)
        return Effect(text=f"the topic {topic} is on all masters")

    @staticmethod
    def _settings(values: Values) -> dict[str, Any]:
        return {name: _number(values, name) for name in ("queues", "read_queues", "perm")}


def _queues_of(admin: Admin, topic: str) -> dict[str, tuple[int, int, int]]:
    """Returns write queues, read queues and rights of a topic by broker; empty if it does not exist."""
    try:
        datas = admin.topics.route(topic).queue_datas
    except ResponseError as error:
        if error.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        return {}
    return {data.broker_name: (data.write_queue_nums, data.read_queue_nums, data.perm) for data in datas}


class DeleteTopic(Change):
    """Deletes a topic with its messages."""

    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        return [text_field("topic", values, names_of(look, "topic"))]

    def name_to_type(self, values: Values) -> str:
        return values["topic"]

    def preview(self, admin: Admin, values: Values) -> Effect:
        topic = values["topic"]
        # Brokers report success when they delete a topic that does not exist.
        rows = admin.topics.status(topic)
        groups = admin.groups.of_topic(topic)
        messages = sum(row.max_offset - row.min_offset for row in rows)
        return Effect(
            text=f"the topic {topic} would be deleted with {messages} messages",
            facts={"queues": len(rows), "stored_messages": messages, "groups": groups},
        )

    def make(self, admin: Admin, values: Values) -> Effect:
        admin.topics.delete(values["topic"])
        return Effect(text=f"the topic {values['topic']} is deleted")


class CreateGroup(Change):
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
            {"setting": name, "before": None if known is None else getattr(known, name), "after": value}
            for name, value in settings.items()
        ]
        word = "be made" if known is None else "change"
        return Effect(
            text=f"the group {values['group']} would {word}",
            tables=[Table(name="settings", columns=("setting", "before", "after"), rows=rows)],
        )

    def make(self, admin: Admin, values: Values) -> Effect:
        group, settings = values["group"], _settings(values)
        if group in admin.groups.all():
            # Its other settings stay.
            admin.groups.update(group, **settings)
        else:
            admin.create_group(group, **settings)
        return Effect(text=f"the group {group} is on all masters")


class DeleteGroup(Change):
    """Deletes a group with its offsets, retries and dead letters."""

    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        return [text_field("group", values, names_of(look, "group"))]

    def name_to_type(self, values: Values) -> str:
        return values["group"]

    def preview(self, admin: Admin, values: Values) -> Effect:
        group = values["group"]
        found = next(
            (each for each in admin.snapshot(tables=("groups", "progress")).groups if each.group == group), None
        )
        if found is None:
            raise ArgumentError(f"group: there is no group {group}")
        facts = {"online_members": _members(admin, group), "behind": found.progress.diff_total if found.progress else 0}
        return Effect(
            text=f"the group {group} would be deleted with its offsets, its retries and its dead letters",
            facts=facts,
        )

    def make(self, admin: Admin, values: Values) -> Effect:
        admin.groups.delete(values["group"], remove_offsets=True)
        return Effect(text=f"the group {values['group']} is deleted")


def _members(admin: Admin, group: str) -> list[str]:
    try:
        return admin.groups.connections(group).client_ids
    except (ResponseError, ClientError):
        return []  # brokers say so if nobody is online


def _number(values: Values, name: str) -> int:
    text = values[name]
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise ArgumentError(f"{name}: expected a number of {_MOST_DIGITS} digits at most, got {text[:60]!r}")
    return int(text)


def _settings(values: Values) -> dict[str, Any]:
    return {name: _number(values, name) for name in ("retry_max_times", "retry_queue_nums")}
