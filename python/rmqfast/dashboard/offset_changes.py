"""Changes of a group's offsets: resets, skips, and copies to another group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rmqfast.admin import Admin, OffsetChange
from rmqfast.admin.offsets import END
from rmqfast.cells import time_text
from rmqfast.dashboard.change import Change, Effect, Values, names_of, text_field
from rmqfast.dashboard.look import Look
from rmqfast.dashboard.page import Field, Table
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue
from rmqfast.store import milliseconds

#: Words for times that have none.
_TIMES = {"begin": 0, "end": END}


class ResetOffsets(Change):
    """Sets a group to the beginning, the end, or a time."""

    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        return [
            text_field("group", values, names_of(look, "group")),
            text_field("topic", values, names_of(look, "topic")),
            text_field("to", values, tuple(_TIMES)),
        ]

    def preview(self, admin: Admin, values: Values) -> Effect:
        changes = admin.offsets.preview(values["group"], values["topic"], self._time(values))
        return _effect(f"{values['group']} would be set to {self._time_text(values)} in {values['topic']}", changes)

    def make(self, admin: Admin, values: Values) -> Effect:
        offsets = admin.offsets.reset_by_time(values["group"], values["topic"], self._time(values))
        return _result(f"{values['group']} is set to {self._time_text(values)} in {values['topic']}", offsets)

    @staticmethod
    def _time(values: Values) -> int:
        word = values["to"]
        time = _TIMES[word] if word in _TIMES else milliseconds(word, name="to")
        if time < 0 and word not in _TIMES:
            raise ArgumentError(f"to: expected begin, end or a time since 1970, got {word[:60]!r}")
        return time

    def _time_text(self, values: Values) -> str:
        return values["to"] if values["to"] in _TIMES else time_text(self._time(values))


class SkipBacklog(Change):
    """Sets a group to the end of a topic."""

    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        return [
            text_field("group", values, names_of(look, "group")),
            text_field("topic", values, names_of(look, "topic")),
        ]

    def preview(self, admin: Admin, values: Values) -> Effect:
        changes = admin.offsets.preview(values["group"], values["topic"], END)
        return _effect(f"{values['group']} would skip its backlog in {values['topic']}", changes)

    def make(self, admin: Admin, values: Values) -> Effect:
        offsets = admin.offsets.reset_to_end(values["group"], values["topic"])
        return _result(f"{values['group']} has skipped its backlog in {values['topic']}", offsets)


class CloneOffsets(Change):
    """Copies the offsets of a group to another one."""

    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        groups = names_of(look, "group")
        return [
            text_field("group", values, groups),
            text_field("target", values, groups),
            text_field("topic", values, names_of(look, "topic")),
        ]

    def preview(self, admin: Admin, values: Values) -> Effect:
        changes = admin.offsets.preview_clone(values["group"], values["target"], values["topic"])
        return _effect(f"{values['target']} would get the offsets of {values['group']} in {values['topic']}", changes)

    def make(self, admin: Admin, values: Values) -> Effect:
        offsets = admin.offsets.clone(values["group"], values["target"], values["topic"])
        return _result(f"{values['target']} has the offsets of {values['group']} in {values['topic']}", offsets)


def _effect(text: str, changes: Sequence[OffsetChange]) -> Effect:
    rows = [
        {
            "broker": each.queue.broker_name,
            "queue": each.queue.queue_id,
            "before": each.before,
            "after": each.after,
            "again": each.again,
            "skipped": each.skipped,
            "end_offset": each.end,
        }
        for each in sorted(changes, key=lambda each: each.queue)
    ]
    columns = ("broker", "queue", "before", "after", "again", "skipped", "end_offset")
    facts = {"again": sum(each.again for each in changes), "skipped": sum(each.skipped for each in changes)}
    return Effect(text=text, facts=facts, tables=[Table(name="queues", columns=columns, rows=rows)])


def _result(text: str, offsets: Mapping[MessageQueue, int]) -> Effect:
    rows = [
        {"broker": queue.broker_name, "queue": queue.queue_id, "offset": offset}
        for queue, offset in sorted(offsets.items())
    ]
    table = Table(name="queues", columns=("broker", "queue", "offset"), rows=rows)
    return Effect(text=text, facts={"queues": len(rows)}, tables=[table])
