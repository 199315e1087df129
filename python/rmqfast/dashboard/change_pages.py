"""The pages of changes: a form, what it would do, and what it did."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

from rmqfast.admin import Admin
from rmqfast.dashboard.change import Change, Effect, Values
from rmqfast.dashboard.change_log import ChangeLog
from rmqfast.dashboard.letter_changes import ResendDeadLetters
from rmqfast.dashboard.look import Look
from rmqfast.dashboard.offset_changes import CloneOffsets, ResetOffsets, SkipBacklog
from rmqfast.dashboard.page import Form, Link, Notice, Page, Table
from rmqfast.dashboard.topic_changes import CreateGroup, CreateTopic, DeleteGroup, DeleteTopic
from rmqfast.errors import ArgumentError, RmqError

#: The changes by the last part of their path.
CHANGES: Final[Mapping[str, Change]] = {
    "reset": ResetOffsets(),
    "skip": SkipBacklog(),
    "clone": CloneOffsets(),
    "create-topic": CreateTopic(),
    "delete-topic": DeleteTopic(),
    "create-group": CreateGroup(),
    "delete-group": DeleteGroup(),
    "resend": ResendDeadLetters(),
}
#: Fields of a form that are no value of the change.
TYPED, NUMBER, TOKEN = "typed", "form", "token"


class ReadOnlyError(ArgumentError):
    """The dashboard makes no changes."""

    def __init__(self) -> None:
        super().__init__("the dashboard is read-only: start it without --read-only to change the cluster")


class ChangePages:
    """Makes the pages of changes."""

    def __init__(self, admin: Admin, log: ChangeLog, *, is_read_only: bool) -> None:
        self._admin, self._log = admin, log
        self.is_read_only: Final[bool] = is_read_only

    def list_changes(self) -> Page:
        """Returns the page with the last changes, and the forms of others."""
        rows = [
            {
                "event_timestamp": entry.timestamp,
                "visitor": entry.visitor,
                "change": entry.name,
                "values": [f"{name}={value}" for name, value in entry.values.items() if value],
                "state": "done" if entry.is_done else "failed",
                "text": entry.text,
            }
            for entry in self._log.entries
        ]
        columns = ("event_timestamp", "visitor", "change", "values", "state", "text")
        links = [Link(title=name, path=f"/changes/{name}", is_change=True) for name in CHANGES]
        return Page(title="changes", links=links, tables=[Table(name="changes", columns=columns, rows=rows)])

    def show(self, name: str, look: Look, values: Values) -> Page:
        """Returns the form of a change and, once it is filled in, what it would do."""
        change = self._change(name)
        fields = change.fields(look, values)
        form = Form(path=f"/changes/{name}", fields=fields, title="preview")
        if not all(values.get(field.name, "").strip() for field in fields if field.is_required):
            return Page(title=name, forms=[form], is_searchable=False)
        try:
            effect = change.preview(self._admin, values)
        except RmqError as error:
            return Page(title=name, forms=[form], notices=[_problem(error)], is_searchable=False)
        hidden = {field.name: values.get(field.name, "") for field in fields}
        confirmation = Form(
            path=f"/changes/{name}",
            fields=(),
            title="do_it",
            hidden={**hidden, NUMBER: secrets.token_urlsafe(12)},
            is_change=True,
            confirmed=change.name_to_type(values),
        )
        return _page(name, effect, level="preview", forms=[form, confirmation])

    def make(self, name: str, look: Look, form: Values, visitor: str) -> Page:
        """Does a change once, and returns the page that tells what it did.

        Raises:
            ArgumentError: The form was sent before, or the name was not typed.
        """
        change = self._change(name)
        fields = change.fields(look, form)
        values = {field.name: form.get(field.name, "").strip() for field in fields}
        if missing := [field.name for field in fields if field.is_required and not values[field.name]]:
            raise ArgumentError(f"expected {', '.join(missing)}, got none: nothing was changed")
        if self._log.was_sent(form.get(NUMBER, "")):
            raise _sent_before()
        if (typed := change.name_to_type(values)) and form.get(TYPED) != typed:
            text = f"to delete it, type its name: expected {typed}, got {form.get(TYPED, '')[:60]!r}"
            self._log.note(visitor, name, values, is_done=False, text=text)
            raise ArgumentError(text)
        if not self._log.take_form(form.get(NUMBER, "")):
            raise _sent_before()
        try:
            effect = change.make(self._admin, values)
        except Exception as error:
            # Whatever it was: a part may be done.
            self._log.note(visitor, name, values, is_done=False, text=str(error) or repr(error))
            raise
        self._log.note(visitor, name, values, is_done=True, text=effect.text)
        return _page(name, effect, level="good", forms=[])

    def _change(self, name: str) -> Change:
        if self.is_read_only:
            raise ReadOnlyError
        if name not in CHANGES:
            raise ArgumentError(f"changes: expected {', '.join(CHANGES)}, got {name[:60]!r}")
        return CHANGES[name]


def _page(name: str, effect: Effect, *, level: str, forms: list[Form]) -> Page:
    return Page(
        title=name,
        facts=effect.facts,
        notices=[Notice(level=level, title="would" if forms else "done", text=effect.text)],
        tables=effect.tables,
        forms=forms,
        links=[Link(title="changes", path="/changes")],
        is_searchable=False,
    )


def _sent_before() -> ArgumentError:
    return ArgumentError("this form was sent before, and is done once: open the change again to repeat it")


def _problem(error: RmqError) -> Notice:
    steps = "; ".join(getattr(error, "__notes__", []))
    return Notice(level="problem", title="error", text=str(error), next_step=steps)
