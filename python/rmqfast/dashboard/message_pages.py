"""The pages that list messages: of a topic, and dead letters of a group."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from rmqfast.admin import Admin, MessagePage, Position
from rmqfast.admin.admin_client import DLQ_PREFIX
from rmqfast.cells import table_cell
from rmqfast.client.consumer import MessageSelector
from rmqfast.dashboard.change import names_of
from rmqfast.dashboard.look import Look
from rmqfast.dashboard.page import Choice, Field, Form, Link, Notice, Page, Row, Table
from rmqfast.errors import ArgumentError, CorruptError
from rmqfast.message import MessageQueue
from rmqfast.store import milliseconds

COLUMNS = ("store_timestamp", "broker", "queue", "queue_offset", "tags", "keys", "size", "body")
#: Highest numbers that RocketMQ has for them.
_MOST_QUEUE, _MOST_OFFSET = (1 << 31) - 1, (1 << 63) - 1
TAG, SQL92 = "tag", "SQL92"


def messages(admin: Admin, look: Look, values: Mapping[str, str]) -> Page:
    """Returns the page of a topic's messages, or of those with a key or an id.

    `values` are `topic` with `expression` and `kind`, `text`, `from`, `older` or `newer`, or with `key` or `place`; or
    `id`.

    Raises:
        ArgumentError: A value has another form.
        ResponseError: 17, the topic does not exist.
    """
    form = _search_form(look, values)
    topic, key, message_id, place = (values.get(name, "").strip() for name in ("topic", "key", "id", "place"))
    if place:
        found = [admin.messages.by_offset(*parse_place(topic, place))]
        return _page(form, _table(found), subject=f"{topic} {place}")
    if message_id:
        found = [admin.view_message(message_id, topic or None)]
        return _page(form, _table(found), subject=message_id)
    if not topic:
        return Page(title="messages", forms=[form], is_searchable=False)
    if key:
        return _page(form, _table(admin.messages.by_key(topic, key)), subject=f"{topic} {key}")
    page = _read(admin, topic, values)
    # The newest first, unless a time is where it begins.
    is_forward = bool(values.get("newer") or (values.get("from") and not values.get("older")))
    table = _table(page.messages if is_forward else page.messages[::-1])
    return _page(form, table, subject=topic, page=page, neighbours=_neighbours("/messages", values, page))


def dead_letters(admin: Admin, group: str, values: Mapping[str, str]) -> Page:
    """Returns the page of a group's dead letters, which can be resent.

    Raises:
        ResponseError: 17, the group has no dead letters, and never had.
    """
    topic, path = DLQ_PREFIX + group, f"/dead-letters/{quote(group, safe='')}"
    page = _read(admin, topic, values)
    fields = [Field(name=name, value=values.get(name, "")) for name in ("text", "from")]
    wanted = {name: values[name] for name in ("text", "from") if values.get(name)}
    choice = Choice(
        path="/changes/resend",
        name="place",
        columns=("broker", "queue", "queue_offset"),
        hidden={"group": group},
        title="resend_selected",
    )
    every = f"/changes/resend?{urlencode({'group': group, 'all': '1', **wanted})}"
    return Page(
        title="dead_letters",
        subject=group,
        forms=[Form(path=path, fields=fields, title="search")],
        notices=_problems(page),
        links=[
            *_neighbours(path, values, page),
            Link(title="resend_all", path=every, is_change=True),
            Link(title="group", path=f"/groups/{quote(group, safe='')}"),
        ],
        tables=[_table(page.messages, choice=choice, is_letter=True)],
        is_searchable=False,
    )


def parse_place(topic: str, text: str) -> tuple[MessageQueue, int]:
    """Returns the queue and the offset of a place, `BROKER:QUEUE:OFFSET`. Raises `ArgumentError` for another text."""
    broker, queue, offset = text.rsplit(":", 2) if text.count(":") >= 2 else ("", "", "")
    if not broker or not queue.isdecimal() or not offset.isdecimal():
        raise ArgumentError(f"place: expected BROKER:QUEUE:OFFSET, got {text[:60]!r}")
    return check_place(MessageQueue(topic, broker, int(queue[:20])), int(offset[:20]))


def check_place(queue: MessageQueue, offset: int) -> tuple[MessageQueue, int]:
    """Returns a queue and an offset. Raises `ArgumentError` for numbers that none has."""
    if queue.queue_id > _MOST_QUEUE or offset > _MOST_OFFSET:
        raise ArgumentError(f"expected a queue and an offset, got {queue.queue_id} and {offset}")
    return queue, offset


def when_of(values: Mapping[str, str]) -> int | None:
    """Returns the time that a form names, in milliseconds since 1970."""
    return milliseconds(values["from"], name="from") if values.get("from", "").strip() else None


def _read(admin: Admin, topic: str, values: Mapping[str, str]) -> MessagePage:
    expression = values.get("expression", "").strip() or "*"
    older, newer = (_position(topic, name, values.get(name)) for name in ("older", "newer"))
    return admin.messages.page(
        topic,
        MessageSelector.by_sql(expression) if values.get("kind") == SQL92 else expression,
        text=values.get("text", ""),
        older_than=older,
        newer_than=newer,
        begin_timestamp=when_of(values) if older is None and newer is None else None,
    )


def _page(
    form: Form, table: Table, *, subject: str, page: MessagePage | None = None, neighbours: Sequence[Link] = ()
) -> Page:
    return Page(
        title="messages",
        subject=subject,
        forms=[form],
        notices=[] if page is None else _problems(page),
        links=neighbours,
        tables=[table],
        is_searchable=False,
    )


def _problems(page: MessagePage) -> list[Notice]:
    notices = [Notice(level="unknown", title="not_told", text=each) for each in page.problems]
    if not page.is_complete:
        text = f"{page.looked_at} messages were looked at; the search goes on with the next page"
        notices.append(Notice(level="note", title="search_is_long", text=text))
    return notices


def _search_form(look: Look, values: Mapping[str, str]) -> Form:
    fields = [
        Field(name="topic", value=values.get("topic", ""), choices=names_of(look, "topic")),
        Field(name="expression", value=values.get("expression", "")),
        Field(name="kind", value=values.get("kind", TAG), kind="choice", choices=(TAG, SQL92)),
        Field(name="text", value=values.get("text", "")),
        Field(name="from", value=values.get("from", "")),
        Field(name="key", value=values.get("key", "")),
        Field(name="id", value=values.get("id", "")),
        Field(name="place", value=values.get("place", "")),
    ]
    return Form(path="/messages", fields=fields, title="search")


def _neighbours(path: str, values: Mapping[str, str], page: MessagePage) -> list[Link]:
    wanted = {name: value for name, value in values.items() if name not in {"older", "newer"} and value}
    links = []
    for title, position in (("older", page.older), ("newer", page.newer)):
        if position is not None:
            links.append(Link(title=title, path=f"{path}?{urlencode({**wanted, title: _position_text(position)})}"))
    return links


def _position_text(position: Position) -> str:
    by_broker: dict[str, dict[str, int]] = {}
    for queue, offset in position.items():
        by_broker.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offset
    return json.dumps(by_broker, separators=(",", ":"))


def _position(topic: str, name: str, text: str | None) -> Position | None:
    if not text:
        return None
    try:
        by_broker = json.loads(text)
        return {
            MessageQueue(topic, broker, int(queue)): int(offset)
            for broker, offsets in by_broker.items()
            for queue, offset in offsets.items()
        }
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError) as error:
        raise ArgumentError(f"{name}: expected a position of another page, got {text[:60]!r}") from error


def _table(found: Sequence[Any], *, choice: Choice | None = None, is_letter: bool = False) -> Table:
    columns = ("store_timestamp", "origin", *COLUMNS[1:]) if is_letter else COLUMNS
    link = "/messages/{topic}/{broker}/{queue}/{queue_offset}"
    links = {"store_timestamp": link, "queue_offset": link}
    return Table(name="messages", columns=columns, rows=[_row(each) for each in found], links=links, choice=choice)


def _row(found: Any) -> Row:
    return {
        "topic": found.topic,
        "store_timestamp": found.store_timestamp,
        "origin": found.property("RETRY_TOPIC"),
        "broker": found.broker_name,
        "queue": found.queue_id,
        "queue_offset": found.queue_offset,
        "tags": found.tags,
        "keys": found.keys,
        "size": found.store_size,
        "body": _preview(found),
    }


def _preview(found: Any) -> str:
    try:
        return table_cell("body", found.body)
    except CorruptError as error:
        return str(error)
