"""The pages about messages: found, read in each form, and what became of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from rmqfast import Admin, EmbeddedCluster, Message, MessageQueue, Producer
from tests.waiting import until

from .conftest import MIXED, OFFLINE
from .visitor import Visitor

TOPIC = "letters"
QUEUE = MessageQueue(TOPIC, "broker-a", 0)
EVIL = "<script>alert(1)</script>\"'\x1b[2J"
LINK = re.compile(r'<a[^>]* href="([^"]+)">(Older|Newer|Hex|Text|JSON|Whole body)</a>')


@pytest.fixture(scope="module")
def sent(cluster: EmbeddedCluster) -> Iterator[list[Any]]:
    with (
        Admin(name_server=cluster.name_server) as admin,
        Producer("post", name_server=cluster.name_server, enable_msg_trace=True) as producer,
    ):
        admin.create_topic(TOPIC, queues=2)
        bodies = [b'{"order": 7, "note": "caf\xc3\xa9"}', b"plain \xff\x00", EVIL.encode(), b"x" * 100_000]
        bodies += [f"number {number}".encode() for number in range(60)]
        results = []
        for number, body in enumerate(bodies):
            queue = MessageQueue(TOPIC, "broker-a", number % 2)
            tags = "even" if number % 2 == 0 else "odd"
            message = Message(TOPIC, body, tags=tags, keys=f"k{number}", properties={"note": EVIL})
            results.append(producer.send(message, queue))
        yield results


def rows(visitor: Visitor, path: str) -> list[dict[str, Any]]:
    answer = visitor.get(path)
    assert answer.status == 200, answer.text
    found: list[dict[str, Any]] = answer.json["messages"]
    return found


def links(html: str) -> dict[str, str]:
    return {word: path.replace("&amp;", "&") for path, word in LINK.findall(html)}


def test_a_topic_is_read_from_its_newest_messages_to_its_oldest(visitor: Visitor, sent: list[Any]) -> None:
    path, seen = f"/messages?topic={TOPIC}", []
    while path:
        html = visitor.get(path).text
        name, _, query = path.partition("?")
        seen += [(row["queue"], row["queue_offset"]) for row in rows(visitor, f"{name}.json?{query}")]
        path = links(html).get("Older", "")
    assert len(seen) == len(set(seen)) == len(sent)
    assert seen[0] == (1, 31)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("expression=odd", 32),
        ("expression=odd+||+even", 32),
        ("text=NUMBER+5", 11),
        ("text=alert(1)", 32),
        ("key=k12", 1),
        ("key=nothing", 0),
        ("from=1", 32),
        ("from=2001-01-01", 32),
        ("from=2999-01-01", 0),
    ],
)
def test_messages_are_found(visitor: Visitor, sent: list[Any], query: str, count: int) -> None:
    assert len(rows(visitor, f"/messages.json?topic={TOPIC}&{query}")) == count


def test_a_message_is_found_by_both_of_its_ids(visitor: Visitor, sent: list[Any]) -> None:
    for query in (f"id={sent[5].offset_msg_id}", f"id={sent[5].msg_id}&topic={TOPIC}"):
        (row,) = rows(visitor, f"/messages.json?{query}")
        assert (row["keys"], row["tags"], row["body"]) == ("k5", "odd", "number 1")


def test_a_body_is_shown_in_each_form(visitor: Visitor, sent: list[Any]) -> None:
    page = f"/messages/{TOPIC}/broker-a/0/0"
    assert visitor.get(f"{page}.json").json["body"] == '{\n  "order": 7,\n  "note": "café"\n}'
    assert visitor.get(f"{page}.json?body=text").json["body"] == '{"order": 7, "note": "café"}'
    hexed = visitor.get(f"{page}.json?body=hex").json["body"].splitlines()
    assert hexed[0] == '00000000  7b 22 6f 72 64 65 72 22 3a 20 37 2c 20 22 6e 6f  {"order": 7, "no'
    binary = f"/messages/{TOPIC}/broker-a/1/0"
    assert visitor.get(f"{binary}.json").json["body"] == "plain \ufffd\\x00"
    assert visitor.get(f"{binary}.json?body=json").json["body"].startswith("no JSON")
    long = f"/messages/{TOPIC}/broker-a/1/1"
    assert visitor.get(f"{long}.json").json["body"].endswith(f"\n… {100_000 - 65_536} bytes more")
    found = links(visitor.get(long).text)
    assert {"Hex", "Text", "Whole body"} <= set(found)
    whole = visitor.get(found["Whole body"])
    assert whole.text == "x" * 100_000
    assert whole.headers["content-type"] == "application/octet-stream"
    assert whole.headers["content-disposition"].startswith("attachment")


def test_what_a_message_holds_is_escaped(visitor: Visitor, sent: list[Any]) -> None:
    for path in (f"/messages?topic={TOPIC}&text=alert", f"/messages/{TOPIC}/broker-a/0/1"):
        html = visitor.get(path).text
        assert not re.search(r"<script>|\x1b", html)
    assert "&lt;script&gt;alert(1)" in html


def test_a_message_tells_what_happened_to_it_and_why(visitor: Visitor, sent: list[Any]) -> None:
    (first, *_) = rows(visitor, "/messages.json?topic=orders&from=1")
    page = f"/messages/orders/{first['broker']}/{first['queue']}/{first['queue_offset']}"
    told = visitor.get(f"{page}.json").json
    assert [notice["title"].partition(":")[0] for notice in told["notices"]] == [OFFLINE, MIXED]
    assert [event["kind"] for event in told["timeline"]][:2] == ["SENT", "STORED"]

    def kinds() -> list[str]:
        return sorted(event["kind"] for event in visitor.get(f"/messages/{TOPIC}/broker-a/0/0.json").json["timeline"])

    # The trace comes later than the message.
    until(lambda: kinds() == ["SENT", "SENT", "STORED"])


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        (f"/messages/{TOPIC}/broker-a/0/999", 404, "has no message at offset 999"),
        (f"/messages/{TOPIC}/broker-a/0/{1 << 70}", 400, "expected a queue and an offset"),
        (f"/messages/{TOPIC}/broker-x/0/0", 502, "there is no broker broker-x"),
        (f"/messages/{TOPIC}/broker-a/0/999/body", 404, "has no message at offset 999"),
        ("/messages?topic=nowhere", 404, "nowhere"),
        ("/messages?id=abc", 400, "message_id"),
        (f"/messages?topic={TOPIC}&older=x", 400, "older: expected a position of another page"),
        (f"/messages?topic={TOPIC}&older={quote('[1]')}", 400, "older: expected a position of another page"),
        (f"/messages?topic={TOPIC}&from=yesterday", 400, "from"),
        (f"/messages?topic={TOPIC}&expression=%7C%7C", 400, "tag"),
        (f"/messages?topic={TOPIC}&expression=a+%3E&kind=SQL92", 502, "SQL92"),
        ("/dead-letters/nobody", 404, "nobody"),
    ],
)
def test_what_is_not_there_is_told(visitor: Visitor, sent: list[Any], path: str, status: int, text: str) -> None:
    answer = visitor.get(path)
    assert answer.status == status, answer.text
    assert text in answer.text


def test_a_body_is_decoded_by_a_schema(visitor: Visitor, sent: list[Any]) -> None:
    page = f"/messages/{TOPIC}/broker-a/0/0"
    told = visitor.get(f"{page}.json?decode=json&schema={quote('note string, order bigint')}").json
    assert json.loads(told["decoded"]) == {"note": "café", "order": 7}
    avro = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]})
    for query, text in (
        (f"decode=avro&schema={quote(avro)}", "expected the end at byte 1, got"),
        ("decode=json&schema=nonsense", "schema"),
        ("decode=xml&schema=a", "decode: expected json or avro"),
        # No file of the server is read.
        ("decode=avro&schema=/etc/hostname", "schema: expected an Avro schema in JSON"),
    ):
        notices = visitor.get(f"{page}.json?{query}").json["notices"]
        assert notices[-1]["title"] == "not_decoded"
        assert text in notices[-1]["text"]


def test_an_avro_body_is_decoded(visitor: Visitor, cluster: EmbeddedCluster) -> None:
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]})
    with (
        Admin(name_server=cluster.name_server) as admin,
        Producer("avro", name_server=cluster.name_server) as producer,
    ):
        admin.create_topic("avro", queues=1)
        place = producer.send(Message("avro", b"\x54"))
    path = f"/messages/avro/{place.queue.broker_name}/{place.queue.queue_id}/{place.queue_offset}.json"
    assert json.loads(visitor.get(f"{path}?decode=avro&schema={quote(schema)}").json["decoded"]) == {"a": 42}


@pytest.mark.parametrize("place", ["broker-a", "broker-a:0", ":0:0", "broker-a:x:0", f"broker-a:0:{10**30}"])
def test_a_place_has_a_form(visitor: Visitor, sent: list[Any], place: str) -> None:
    answer = visitor.get(f"/messages?topic={TOPIC}&place={place}")
    assert answer.status == 400
    (row,) = rows(visitor, f"/messages.json?topic={TOPIC}&place=broker-a:0:1")
    assert row["keys"] == "k2"


def test_words_of_users_are_not_translated(visitor: Visitor, cluster: EmbeddedCluster) -> None:
    queue = MessageQueue("reset", "broker-a", 0)
    with (
        Admin(name_server=cluster.name_server) as admin,
        Producer("words", name_server=cluster.name_server) as producer,
    ):
        admin.create_topic("reset", queues=1)
        producer.send(Message("reset", b"done", tags="reset", keys="skip", properties={"from": "next"}), queue)
        html = visitor.get("/messages/reset/broker-a/0/0?lang=zh").text
        admin.topics.delete("reset")
    visitor.get("/?lang=en")
    for text in ("reset", "done", "skip", "from", "next"):
        assert re.search(rf">\s*{text}\s*<", html), text


def test_all_rows_of_a_page_without_a_search_are_shown(visitor: Visitor, cluster: EmbeddedCluster) -> None:
    with (
        Admin(name_server=cluster.name_server) as admin,
        Producer("keys", name_server=cluster.name_server) as producer,
    ):
        admin.create_topic("alike", queues=1)
        for _ in range(60):
            producer.send(Message("alike", b"x", keys="same"), MessageQueue("alike", "broker-a", 0))
        html = visitor.get("/messages?topic=alike&key=same").text
        admin.topics.delete("alike")
    assert len(re.findall(r"<tr>\s*<td", html)) == 60
