"""The page of one message, with all that happened to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from rmqfast.admin import Admin, Explanation, MessageEvent, Outcome
from rmqfast.admin.admin_client import DLQ_PREFIX
from rmqfast.client.instance import ClientConfig
from rmqfast.dashboard.decoded_body import FORMATS, decoded_text
from rmqfast.dashboard.message_body import BODY_FORMS, body_text, plain_text
from rmqfast.dashboard.page import Field, Form, Link, Notice, Page, Table, Text
from rmqfast.errors import RmqError
from rmqfast.message import MessageQueue


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
        texts=[*decoded, body_text(found, values.get("body", ""))],
        forms=[_decode_form(queue, offset, values)],
        links=_links(found),
        is_searchable=False,
    )


def body_at(admin: Admin, queue: MessageQueue, offset: int) -> bytes:
    """Returns the whole body of a message. Raises `UnknownMessageError` if there is none."""
    body: bytes = admin.messages.by_offset(queue, offset).body
    return body


def place_path(queue: MessageQueue, offset: int) -> str:
    """Returns the path of a message's page."""
    parts = (queue.topic, queue.broker_name, queue.queue_id, offset)
    return "/messages/" + "/".join(quote(str(part), safe="") for part in parts)


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
    return [Text(title="decoded", text=plain_text(text.encode("utf-8", "replace")))], []


def _decode_form(queue: MessageQueue, offset: int, values: Mapping[str, str]) -> Form:
    fields = [
        Field(name="decode", value=values.get("decode", FORMATS[0]), kind="choice", choices=FORMATS),
        Field(name="schema", value=values.get("schema", "")),
    ]
    return Form(path=place_path(queue, offset), fields=fields, title="decode_body")


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
