"""Changes on the pages: each asks, shows what it would do, does it once, and tells and logs what it did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from rmqfast import Admin, ClientConfig, EmbeddedCluster, Message, MessageQueue, Producer
from rmqfast.client.push import ConsumeConcurrentlyStatus
from rmqfast.dashboard import ChangeEntry, Dashboard
from rmqfast.errors import ResponseError
from tests.client.push.listening import Seen, consumer
from tests.waiting import until

from .conftest import PASSWORD
from .visitor import Answer, Visitor

HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')
CHANGES: list[ChangeEntry] = []


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: EmbeddedCluster) -> Iterator[Admin]:
    with Admin(name_server=cluster.name_server) as running:
        yield running


@pytest.fixture(scope="module")
def producer(cluster: EmbeddedCluster) -> Iterator[Producer]:
    with Producer("shop", name_server=cluster.name_server) as running:
        yield running


@pytest.fixture(scope="module")
def dashboard(cluster: EmbeddedCluster) -> Iterator[Dashboard]:
    config = ClientConfig(name_server=cluster.name_server)
    with Dashboard(config, port=0, password=PASSWORD, interval=0.5, on_change=CHANGES.append) as running:
        yield running


def fill(admin: Admin, producer: Producer, topic: str, count: int) -> list[MessageQueue]:
    admin.create_topic(topic, queues=1)
    queues = [MessageQueue(topic, name, 0) for name in ("broker-a", "broker-b")]
    for number in range(count):
        producer.send(Message(topic, b"x"), queues[number % 2])
    return queues


def confirm(visitor: Visitor, name: str, typed: str = "", **values: str) -> Answer:
    """Opens a change and presses its button."""
    asked = visitor.get(f"/changes/{name}?{urlencode(values)}")
    assert asked.status == 200, asked.text
    *_, form = asked.text.split('<form class="confirm"')
    return visitor.post(f"/changes/{name}", {**dict(HIDDEN.findall(form.partition("</form>")[0])), "typed": typed})


def test_offsets_are_reset_skipped_and_copied(visitor: Visitor, admin: Admin, producer: Producer) -> None:
    queues = fill(admin, producer, "bills", 10)
    for queue in queues:
        admin.offsets.reset("cashiers", queue, 2)
    shown = visitor.get("/changes/reset.json?group=cashiers&topic=bills&to=end").json
    assert (shown["facts"], [row["skipped"] for row in shown["queues"]]) == ({"again": 0, "skipped": 6}, [3, 3])
    assert admin.groups.progress("cashiers", "bills").diff_total == 6

    assert (
        "cashiers is set to begin in bills"
        in confirm(visitor, "reset", group="cashiers", topic="bills", to="begin").text
    )
    assert admin.groups.progress("cashiers", "bills").diff_total == 10
    assert "has skipped its backlog" in confirm(visitor, "skip", group="cashiers", topic="bills").text
    assert admin.groups.progress("cashiers", "bills").diff_total == 0
    done = confirm(visitor, "clone", group="cashiers", target="auditors", topic="bills")
    assert "auditors has the offsets of cashiers in bills" in done.text
    assert admin.groups.progress("auditors", "bills").diff_total == 0
    assert "is set to 2001-01-01" in confirm(visitor, "reset", group="cashiers", topic="bills", to="2001-01-01").text


def test_topics_and_groups_are_made_changed_and_deleted_by_typing_their_names(visitor: Visitor, admin: Admin) -> None:
    assert (
        "is on all masters"
        in confirm(visitor, "create-topic", topic="made", queues="3", read_queues="3", perm="6").text
    )
    assert [row.queue_id for row in admin.topics.status("made")] == [0, 1, 2] * 2
    shown = visitor.get("/changes/create-topic.json?topic=made&queues=5&read_queues=3&perm=4").json["brokers"]
    assert {(row["before"], row["after"]) for row in shown} == {("3 / 3 / 6", "5 / 3 / 4")}
    assert (
        "is on all masters"
        in confirm(visitor, "create-group", group="made", retry_max_times="2", retry_queue_nums="1").text
    )
    assert admin.groups.all()["made"].retry_max_times == 2
    admin.groups.update("made", consume_enable=False)
    confirm(visitor, "create-group", group="made", retry_max_times="5", retry_queue_nums="1")
    assert (admin.groups.all()["made"].retry_max_times, admin.groups.all()["made"].consume_enable) == (5, False)

    for typed in ("", "Made", "made2"):
        refused = confirm(visitor, "delete-topic", typed=typed, topic="made")
        assert refused.status == 400
        assert "to delete it, type its name" in refused.text
        assert (CHANGES[-1].name, CHANGES[-1].is_done) == ("delete-topic", False)
    admin.topics.update("made", queues=8, read_queues=16)
    until(lambda: 'name="read_queues" value="16"' in visitor.get("/changes/create-topic?topic=made").text)
    assert "is changed" in confirm(visitor, "create-topic", topic="made", queues="8", read_queues="16", perm="4").text
    assert {(each.read_queue_nums, each.perm) for each in admin.topics.route("made").queue_datas} == {(16, 4)}
    assert "made" in admin.topics.all()
    assert "the topic made is deleted" in confirm(visitor, "delete-topic", typed="made", topic="made").text
    assert "made" not in admin.topics.all()
    assert confirm(visitor, "delete-group", typed="no", group="made").status == 400
    assert "the group made is deleted" in confirm(visitor, "delete-group", typed="made", group="made").text
    assert "made" not in admin.groups.all()


@pytest.fixture(scope="module")
def letters(cluster: EmbeddedCluster, admin: Admin, producer: Producer) -> list[Any]:
    """The dead letters of a group whose members are offline."""
    admin.create_topic("parcels", queues=1)
    for number in range(40):
        producer.send(Message("parcels", f"parcel {number}".encode(), keys=f"p{number}"))
    listener = Seen(lambda _messages, _context: ConsumeConcurrentlyStatus.RECONSUME_LATER)
    options = {"max_reconsume_times": 0, "consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}
    with consumer(cluster, "couriers", listener, "parcels", **options):
        until(lambda: len(dead(admin)) == 40)
    return dead(admin)


def dead(admin: Admin) -> list[Any]:
    try:
        return admin.dead_letters.of_group("couriers", max_messages=None)
    except ResponseError as error:
        assert error.code == 17  # noqa: PT017 - the group comes with its first member
        return []


def resent(admin: Admin) -> list[bytes]:
    page = admin.messages.page("%RETRY%couriers", max_messages=1000)
    return [message.body for message in page.messages]


def test_dead_letters_are_listed_filtered_and_resent(visitor: Visitor, admin: Admin, letters: list[Any]) -> None:
    until(lambda: [row["dead_letters"] for row in visitor.get("/dead-letters.json").json["dead_letters"]] == [40])
    listed = visitor.get("/dead-letters/couriers.json?text=parcel+1").json["messages"]
    assert {row["body"] for row in listed} == {"parcel 1", *(f"parcel {number}" for number in range(10, 20))}
    assert {row["origin"] for row in listed} == {"parcels"}
    html = visitor.get("/dead-letters/couriers?text=parcel+1").text
    places = re.findall(r'name="place" value="([^"]+)"', html)
    assert len(places) == 11

    chosen = [f"{row['broker']}:{row['queue']}:{row['queue_offset']}" for row in listed[:3]]
    assert set(chosen) <= set(places)
    before = len(resent(admin))
    query = urlencode([("group", "couriers"), *(("place", place) for place in chosen)])
    assert visitor.get(f"/changes/resend.json?{query}").json["facts"] == {"dead_letters": 3}
    done = confirm(visitor, "resend", group="couriers", place=" ".join(chosen))
    assert "3 dead letters are resent to couriers" in done.text
    assert resent(admin)[before:] == [row["body"].encode() for row in listed[:3]]

    assert "11 dead letters are resent" in confirm(visitor, "resend", group="couriers", all="1", text="parcel 1").text
    # The search stays on all of its pages.
    html = visitor.get("/dead-letters/couriers?from=2001-01-01&text=parcel").text
    (newer,) = re.findall(r'href="([^"]+)">Newer', html)
    (every,) = re.findall(r'href="([^"]+)">Resend all', visitor.get(newer.replace("&amp;", "&")).text)
    assert every == "/changes/resend?group=couriers&amp;all=1&amp;text=parcel&amp;from=2001-01-01"
    late = str(letters[-1].store_timestamp + 1000)
    assert "0 dead letters are resent" in confirm(visitor, "resend", group="couriers", all="1", **{"from": late}).text
    assert "40 dead letters are resent" in confirm(visitor, "resend", group="couriers", all="1").text
    assert len(resent(admin)) == before + 54


def test_a_dead_letter_is_resent_from_its_own_page(visitor: Visitor, admin: Admin, letters: list[Any]) -> None:
    one = letters[0]
    html = visitor.get(f"/messages/%25DLQ%25couriers/{one.broker_name}/{one.queue_id}/{one.queue_offset}").text
    (path,) = re.findall(r'href="(/changes/resend[^"]+)"', html)
    assert "couriers would consume 1 dead letters once more" in visitor.get(path.replace("&amp;", "&")).text


def test_a_form_that_is_sent_again_does_nothing(visitor: Visitor, admin: Admin, letters: list[Any]) -> None:
    asked = visitor.get(f"/changes/resend?group=couriers&place={letters[0].broker_name}:0:0")
    form = dict(HIDDEN.findall(asked.text.split('<form class="confirm"')[1]))
    before = len(resent(admin))
    assert visitor.post("/changes/resend", form).status == 200
    again = visitor.post("/changes/resend", form)
    assert again.status == 400
    assert "this form was sent before" in again.text
    assert len(resent(admin)) == before + 1


@pytest.mark.parametrize(
    ("forged", "headers"),
    [
        ({"token": "guessé"}, {}),
        ({str(number): "" for number in range(30)}, {}),
        ({"token": "guessed"}, {}),
        ({"token": ""}, {}),
        ({}, {"Origin": "http://evil.example"}),
        ({"text": "x" * 300_000}, {}),
    ],
    ids=["no ASCII", "many fields", "another token", "no token", "another site", "too large"],
)
def test_a_form_of_somebody_else_changes_nothing(
    visitor: Visitor, admin: Admin, producer: Producer, forged: dict[str, str], headers: dict[str, str]
) -> None:
    admin.create_topic("kept", queues=1)
    asked = visitor.get("/changes/delete-topic?topic=kept")
    form = dict(HIDDEN.findall(asked.text.split('<form class="confirm"')[1])) | {"typed": "kept"} | forged
    answer = visitor.post("/changes/delete-topic", form, **headers)
    assert answer.status == 403
    assert "nothing was changed" in answer.text
    assert "kept" in admin.topics.all()


def test_a_stranger_changes_nothing(dashboard: Dashboard, admin: Admin) -> None:
    with Visitor(dashboard.address) as stranger:
        answer = stranger.post("/changes/create-topic", {"topic": "strange", "queues": "1", "perm": "6"})
        assert answer.status == 303
    assert "strange" not in admin.topics.all()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/changes/reset?group=nobody&topic=nowhere&to=end", "nowhere"),
        ("/changes/reset?group=cashiers&topic=TBW102&to=soon", "to"),
        ("/changes/reset?group=cashiers&topic=TBW102&to=-1", "to: expected begin, end or a time since 1970"),
        ("/changes/create-topic?topic=a&queues=1234567&read_queues=1&perm=6", "queues: expected a number of 6 digits"),
        ("/changes/create-topic?topic=a&queues=x&read_queues=1&perm=6", "queues: expected a number"),
        ("/changes/delete-group?group=nobody", "there is no group nobody"),
        ("/changes/delete-topic?topic=nowhere", "nowhere"),
        ("/changes/resend?group=couriers", "got both or neither"),
        ("/changes/resend?group=couriers&place=1", "place: expected BROKER:QUEUE:OFFSET"),
    ],
)
def test_what_cannot_be_done_is_told_before(visitor: Visitor, letters: list[Any], path: str, text: str) -> None:
    answer = visitor.get(path)
    assert "Problem: Error" in answer.text
    assert text in answer.text
    assert '<form class="confirm"' not in answer.text


def test_a_change_that_fails_is_told_and_logged(visitor: Visitor, admin: Admin) -> None:
    failed = confirm(visitor, "create-topic", topic="not legal!", queues="1", read_queues="1", perm="6")
    assert failed.status in {400, 502}
    assert "not legal!" in failed.text
    entry = visitor.get("/changes.json").json["changes"][0]
    assert (entry["change"], entry["state"], entry["visitor"]) == ("create-topic", "failed", "127.0.0.1")
    assert CHANGES[-1].name == "create-topic"
    assert not CHANGES[-1].is_done


def test_changes_are_logged_with_who_and_what(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    confirm(visitor, "create-topic", topic="logged", queues="1", read_queues="1", perm="6")
    (entry, *_) = visitor.get("/changes.json").json["changes"]
    assert (entry["change"], entry["values"]) == (
        "create-topic",
        ["topic=logged", "queues=1", "read_queues=1", "perm=6"],
    )
    assert (entry["state"], entry["text"]) == ("done", "the topic logged is on all masters")
    assert "127.0.0.1 create-topic topic='logged' queues='1' read_queues='1' perm='6': done" in caplog.text


def test_a_read_only_dashboard_changes_nothing(cluster: EmbeddedCluster, admin: Admin) -> None:
    config = ClientConfig(name_server=cluster.name_server)
    with Dashboard(config, port=0, password=PASSWORD, read_only=True) as running, Visitor(running.address) as visitor:
        visitor.log_in(PASSWORD)
        token = visitor.token("/")
        for path in ("/", "/topics", "/groups", "/changes", "/dead-letters/couriers", "/topics/TBW102"):
            html = visitor.get(path).text
            assert 'href="/changes/' not in html
            assert 'type="checkbox"' not in html
        assert "read-only" in visitor.get("/").text
        assert visitor.get("/changes/create-topic?topic=no&queues=1&read_queues=1&perm=6").status == 403
        form = {"token": token, "form": "1", "topic": "no", "queues": "1", "perm": "6"}
        assert visitor.post("/changes/create-topic", form).status == 403
    assert "no" not in admin.topics.all()


def test_a_form_without_its_values_changes_nothing(visitor: Visitor, admin: Admin) -> None:
    before = admin.topics.all()
    form = {"token": visitor.token("/"), "form": "a number", "topic": " ", "typed": ""}
    answer = visitor.post("/changes/delete-topic", form)
    assert answer.status == 400
    assert "expected topic, got none: nothing was changed" in answer.text
    assert admin.topics.all() == before


def fail(_entry: ChangeEntry) -> None:
    raise RuntimeError("a callback of somebody")


def test_a_callback_that_fails_leaves_the_change_told(cluster: EmbeddedCluster, admin: Admin) -> None:
    config = ClientConfig(name_server=cluster.name_server)
    with (
        Dashboard(config, port=0, password=PASSWORD, on_change=fail) as running,
        Visitor(running.address) as visitor,
    ):
        visitor.log_in(PASSWORD)
        made = confirm(visitor, "create-topic", topic="told", queues="1", read_queues="1", perm="6")
        assert made.status == 200
        assert visitor.get("/changes.json").json["changes"][0]["state"] == "done"
    assert "told" in admin.topics.all()
