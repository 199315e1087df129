"""The pages about messages: those of a topic, and one with all that happened to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from rmqfast.admin import Admin, Explanation, MessageEvent, MessagePage, Outcome, Position
from rmqfast.admin.admin_client import DLQ_PREFIX
from rmqfast.cells import escape, table_cell
from rmqfast.client.consumer import MessageSelector
from rmqfast.client.instance import ClientConfig
from rmqfast.dashboard.change import names_of
from rmqfast.dashboard.decoded_body import FORMATS, decoded_text
from rmqfast.dashboard.look import Look
from rmqfast.dashboard.page import Choice, Field, Form, Link, Notice, Page, Row, Table, Text
from rmqfast.errors import ArgumentError, CorruptError, RmqError
from rmqfast.message import MessageQueue
from rmqfast.store import milliseconds

COLUMNS = ("store_timestamp", "broker", "queue", "queue_offset", "tags", "keys", "size", "body")
#: Highest numbers that RocketMQ has for them.
_MOST_QUEUE, _MOST_OFFSET = (1 << 31) - 1, (1 << 63) - 1
#: Bytes of a body on the page of a message.
_BODY = 64 << 10
#: Forms of a body.
BODY_FORMS = ("json", "text", "hex")
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


def message(admin: Admin, config: ClientConfig, queue: MessageQueue, offset: int, values: Mapping[str, str]) -> Page:
    """Returns the page of one message: its fields, what happened to it, and why, and its body.

    `values` are `body`, the form of the body, or `decode` and `schema`.

    Raises:
        UnknownMessageError: There is none.
    """
    found = admin.messages.by_offset(queue, offset)
    explanation, events, notices = _explain(admin, found)
    properties = [{"name": name, "value": value} for name, value in sorted(found.properties.items())]
    decoded, problems = _decode(admin, config, found, values)
    return Page(
        title="message",
        subject=found.msg_id or "",
        facts=_facts(found),
        notices=[*notices, *map(_verdict, _parts(explanation)), *problems],
        tables=[
            Table(
                name="timeline",
                columns=("event_timestamp", "kind", "group", "client", "text"),
                rows=[
                    {
                        "event_timestamp": event.timestamp,
                        "kind": event.kind.value,
                        "group": event.group,
                        "client": event.client,
                        "text": event.text,
                    }
                    for event in events
                ],
                links={"group": "/groups/{group}"},
            ),
            Table(name="properties", columns=("name", "value"), rows=properties),
        ],
        texts=[*decoded, _body(found, values.get("body", ""))],
        forms=[_decode_form(queue, offset, values)],
        links=_links(found),
        is_searchable=False,
    )


def _explain(admin: Admin, found: Any) -> tuple[Explanation, Sequence[MessageEvent], list[Notice]]:
    """Returns what became of a message, and why a part of it is not told."""
    explanation, events, notices = Explanation(subject=""), list[MessageEvent](), list[Notice]()
    try:
        explanation = admin.explain(found)
        events = admin.messages.timeline(found, explanation)
    except RmqError as error:
        notices.append(Notice(level="unknown", title="not_told", text=str(error)))
    return explanation, events, notices


def _decode(
    admin: Admin, config: ClientConfig, found: Any, values: Mapping[str, str]
) -> tuple[list[Text], list[Notice]]:
    """Returns the decoded body, if a schema is given, or why there is none."""
    schema = values.get("schema", "").strip()
    if not schema:
        return [], []
    try:
        text = decoded_text(admin, config, found, decode=values.get("decode", ""), schema=schema)
    except RmqError as error:
        steps = "; ".join(getattr(error, "__notes__", []))
        return [], [Notice(level="problem", title="not_decoded", text=str(error), next_step=steps)]
    return [Text(title="decoded", text=_plain_text(text.encode("utf-8", "replace")))], []


def _decode_form(queue: MessageQueue, offset: int, values: Mapping[str, str]) -> Form:
    fields = [
        Field(name="decode", value=values.get("decode", FORMATS[0]), kind="choice", choices=FORMATS),
        Field(name="schema", value=values.get("schema", "")),
    ]
    return Form(path=place_path(queue, offset), fields=fields, title="decode_body")


def place_path(queue: MessageQueue, offset: int) -> str:
    """Returns the path of a message's page."""
    parts = (queue.topic, queue.broker_name, queue.queue_id, offset)
    return "/messages/" + "/".join(quote(str(part), safe="") for part in parts)


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


def _facts(found: Any) -> dict[str, Any]:
    return {
        "topic": found.topic,
        "broker": found.broker_name,
        "queue": found.queue_id,
        "queue_offset": found.queue_offset,
        "tags": found.tags,
        "keys": found.keys,
        "born_timestamp": found.born_timestamp,
        "store_timestamp": found.store_timestamp,
        "born_host": found.born_host,
        "size": found.store_size,
        "attempts": found.reconsume_times,
        "offset_msg_id": found.offset_msg_id,
    }


def _parts(explanation: Explanation) -> Sequence[Explanation]:
    """Returns the explanations of all groups; none of a message that was not explained."""
    return explanation.parts or ((explanation,) if explanation.sentences else ())


def _verdict(part: Explanation) -> Notice:
    if part.group is None or part.outcome is None:
        return Notice(level="note", title="explain", text="; ".join(part.sentences))
    level, group = "problem" if part.has_problem else "note", part.group.group
    if part.outcome is Outcome.UNKNOWN:
        level = "unknown"
    return Notice(
        level=level,
        title=f"{group}: {part.outcome.value}",
        text="; ".join(part.sentences),
        next_step=part.next_step or "",
        path=f"/groups/{quote(group, safe='')}",
    )


def _links(found: Any) -> list[Link]:
    queue, offset, links = found.queue, found.queue_offset, []
    if offset > 0:
        links.append(Link(title="previous_message", path=place_path(queue, offset - 1)))
    links.append(Link(title="next_message", path=place_path(queue, offset + 1)))
    links.append(Link(title="whole_body", path=f"{place_path(queue, offset)}/body"))
    links += [Link(title=form, path=f"{place_path(queue, offset)}?body={form}") for form in BODY_FORMS]
    if found.topic.startswith(DLQ_PREFIX):
        place = f"{queue.broker_name}:{queue.queue_id}:{offset}"
        query = urlencode({"group": found.topic.removeprefix(DLQ_PREFIX), "place": place})
        links.append(Link(title="resend", path=f"/changes/resend?{query}", is_change=True))
    return links


def _body(found: Any, form: str) -> Text:
    try:
        body: bytes = found.body
    except CorruptError as error:
        return Text(title="body", text=str(error))
    shown = body[:_BODY]
    more = "" if len(body) <= _BODY else f"\n… {len(body) - _BODY} bytes more"
    if form == "hex":
        return Text(title="body", text=_hex_lines(shown) + more)
    if form != "text" and (parsed := _json_text(body)) is not None:
        return Text(title="body", text=parsed)
    if form == "json":
        return Text(title="body", text=f"no JSON of {_BODY} bytes or less\n")
    return Text(title="body", text=_plain_text(shown) + more)


def _json_text(body: bytes) -> str | None:
    """Returns a JSON body in lines; `None` if it is none, or too long."""
    if len(body) > _BODY:
        return None
    try:
        text = json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    # Deeply nested, a short body would be a long text.
    return _plain_text(text.encode("utf-8", "replace")) if len(text) <= 4 * _BODY else None


def _plain_text(body: bytes) -> str:
    text = body.decode("utf-8", "replace")
    return "\n".join(escape(line.replace("\t", "    ")) for line in text.splitlines())


def _hex_lines(body: bytes) -> str:
    lines = []
    for start in range(0, len(body), 16):
        piece = body[start : start + 16]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{start:08x}  {piece.hex(' '):<47}  {letters}")
    return "\n".join(lines)


def body_at(admin: Admin, queue: MessageQueue, offset: int) -> bytes:
    """Returns the whole body of a message. Raises `UnknownMessageError` if there is none."""
    body: bytes = admin.messages.by_offset(queue, offset).body
    return body
