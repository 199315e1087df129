"""Dead letters, resent to their group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from rmqfast.admin import Admin
from rmqfast.dashboard.change import Effect, Values, names_of, text_field
from rmqfast.dashboard.look import Look
from rmqfast.dashboard.message_pages import parse_place, when_of
from rmqfast.dashboard.page import Field, Table
from rmqfast.errors import ArgumentError, ClientError, RmqError

#: Dead letters that one request resends. The next request goes on behind them.
MOST = 10_000
#: Letters that a preview lists.
_LISTED = 50
_COLUMNS = ("store_timestamp", "origin", "broker", "queue", "queue_offset", "keys")


class ResendDeadLetters:
    """Resends selected dead letters, or all that have a text, of a time on."""

    def fields(self, look: Look, values: Values) -> Sequence[Field]:
        return [
            text_field("group", values, names_of(look, "group")),
            text_field("place", values, is_required=False),
            text_field("all", values, ("1",), is_required=False),
            text_field("text", values, is_required=False),
            text_field("from", values, is_required=False),
        ]

    def preview(self, admin: Admin, values: Values) -> Effect:
        letters = [_row(each) for each in islice(_letters(admin, values), MOST)]
        table = Table(name="dead_letters", columns=_COLUMNS, rows=letters[:_LISTED])
        more = f" at least {MOST}" if len(letters) == MOST else f" {len(letters)}"
        text = f"{values['group']} would consume{more} dead letters once more; those that were resent before, too"
        return Effect(text=text, facts={"dead_letters": len(letters)}, tables=[table])

    def make(self, admin: Admin, values: Values) -> Effect:
        rows: list[dict[str, Any]] = []
        for letter in islice(_letters(admin, values), MOST):
            try:
                sent = admin.dead_letters.resend(letter)
            except RmqError as error:
                # What was resent before stays resent: tell both.
                error.add_note(f"{len(rows)} dead letters were resent before: {_places(rows)}")
                raise
            rows.append({**_row(letter), "resent_to": f"{sent.queue.broker_name}:{sent.queue.queue_id}"})
        rest = f"; the first {MOST}: resend from the time of the last one on" if len(rows) == MOST else ""
        table = Table(name="dead_letters", columns=(*_COLUMNS, "resent_to"), rows=rows)
        return Effect(text=f"{len(rows)} dead letters are resent to {values['group']}{rest}", tables=[table])


def _letters(admin: Admin, values: Values) -> Iterator[Any]:
    """Yields the dead letters that are meant, oldest first."""
    topic, places = f"%DLQ%{values['group']}", values.get("place", "").split()
    if bool(places) == bool(values.get("all")):
        raise ArgumentError("expected selected dead letters, or all of them: got both or neither")
    if places:
        yield from (admin.messages.by_offset(*parse_place(topic, place)) for place in places)
        return
    # Letters that are resent may be dead again before the last one is: those are not meant.
    ends = {row.queue: row.max_offset for row in admin.topics.status(topic)}
    page = admin.messages.page(topic, text=values.get("text", ""), begin_timestamp=when_of(values) or 0)
    while True:
        meant = [each for each in page.messages if each.queue_offset < ends.get(each.queue, 0)]
        yield from meant
        if page.problems:
            raise ClientError("; ".join(page.problems), next_step="try again once these brokers answer")
        if page.newer is None or len(meant) < len(page.messages):
            return
        page = admin.messages.page(topic, text=values.get("text", ""), newer_than=page.newer)


def _row(letter: Any) -> dict[str, Any]:
    return {
        "store_timestamp": letter.store_timestamp,
        "origin": letter.property("RETRY_TOPIC"),
        "broker": letter.broker_name,
        "queue": letter.queue_id,
        "queue_offset": letter.queue_offset,
        "keys": letter.keys,
    }


def _places(rows: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"{row['broker']}:{row['queue']}:{row['queue_offset']}" for row in rows[:_LISTED]) or "none"
