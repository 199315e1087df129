"""Dead letters, resent to their group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rmqfast.admin import Admin
from rmqfast.admin.admin_client import DLQ_PREFIX
from rmqfast.dashboard.change import Change, Effect, Values, names_of, text_field
from rmqfast.dashboard.look import Look
from rmqfast.dashboard.message_pages import parse_place, when_of
from rmqfast.dashboard.page import Field, Table
from rmqfast.errors import ArgumentError, ClientError, RmqError
from rmqfast.system import monotonic

#: Dead letters after which a request ends. The next one goes on behind them.
MOST = 10_000
#: Seconds for which a preview counts letters.
_PREVIEW_SECONDS = 5.0
#: Letters that a preview lists.
_LISTED = 50
_COLUMNS = ("store_timestamp", "origin", "broker", "queue", "queue_offset", "keys")


class ResendDeadLetters(Change):
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
        rows, is_whole = list[dict[str, Any]](), True
        deadline = monotonic() + _PREVIEW_SECONDS
        for page in _pages(admin, values):
            rows += [_row(each) for each in page]
            if len(rows) > MOST or monotonic() > deadline:
                is_whole = False
                break
        table = Table(name="dead_letters", columns=_COLUMNS, rows=rows[:_LISTED])
        count = f"{len(rows)}" if is_whole else f"at least {len(rows)}"
        text = f"{values['group']} would consume {count} dead letters once more; those that were resent before, too"
        return Effect(text=text, facts={"dead_letters": len(rows)}, tables=[table])

    def make(self, admin: Admin, values: Values) -> Effect:
        rows: list[dict[str, Any]] = []
        rest = ""
        try:
            for page in _pages(admin, values):
                # Not within a millisecond: the next request begins at a time.
                if len(rows) >= MOST and page and page[0].store_timestamp > rows[-1]["store_timestamp"]:
                    rest = f"; there are more: go on from {page[0].store_timestamp}"
                    break
                for letter in page:
                    sent = admin.dead_letters.resend(letter)
                    rows.append({**_row(letter), "resent_to": f"{sent.queue.broker_name}:{sent.queue.queue_id}"})
        except RmqError as error:
            # What was resent before stays resent: tell both.
            places = ", ".join(f"{row['broker']}:{row['queue']}:{row['queue_offset']}" for row in rows[-_LISTED:])
            raise ClientError(
                f"{len(rows)} dead letters were resent, then: {error}",
                next_step=f"resend the others only; the last ones that were resent: {places or 'none'}",
            ) from error
        table = Table(name="dead_letters", columns=(*_COLUMNS, "resent_to"), rows=rows)
        return Effect(text=f"{len(rows)} dead letters are resent to {values['group']}{rest}", tables=[table])


def _pages(admin: Admin, values: Values) -> Iterator[Sequence[Any]]:
    """Yields the dead letters that are meant, page by page, oldest first."""
    topic, places = f"{DLQ_PREFIX}{values['group']}", values.get("place", "").split()
    if bool(places) == bool(values.get("all")):
        raise ArgumentError("expected selected dead letters, or all of them: got both or neither")
    if places:
        for place in places:
            yield [admin.messages.by_offset(*parse_place(topic, place))]
        return
    # Letters that are resent may be dead again before the last one is: those are not meant.
    ends = {row.queue: row.max_offset for row in admin.topics.status(topic)}
    page = admin.messages.page(topic, text=values.get("text", ""), begin_timestamp=when_of(values) or 0)
    while True:
        if page.problems:
            raise ClientError("; ".join(page.problems), next_step="try again once these brokers answer")
        yield [each for each in page.messages if each.queue_offset < ends.get(each.queue, 0)]
        position = page.newer
        if position is None or all(position.get(queue, end) >= end for queue, end in ends.items()):
            return
        page = admin.messages.page(topic, text=values.get("text", ""), newer_than=position)


def _row(letter: Any) -> dict[str, Any]:
    return {
        "store_timestamp": letter.store_timestamp,
        "origin": letter.property("RETRY_TOPIC"),
        "broker": letter.broker_name,
        "queue": letter.queue_id,
        "queue_offset": letter.queue_offset,
        "keys": letter.keys,
    }
