"""Pages of a topic: all its messages once, in the order of their times, in both directions, with each filter."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue
from rmqfast.admin import Admin
from rmqfast.client.consumer import MessageSelector
from rmqfast.client.instance import ClientConfig
from rmqfast.client.producer import Producer
from rmqfast.errors import ArgumentError, ExpressionError, ResponseError
from tests.broker.interop.frames import Frame
from tests.proxy import Passage, Proxy, Stream, frames

TOPIC = "browsed"
#: Two tags of one hash, and two others.
TAGS = ("Aa", "BB", "paid", "")


@pytest.fixture(scope="module")
def cluster(face: str) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2, config={"enablePropertyFilter": "true"}) as running:
        yield running


@pytest.fixture(scope="module")
def stored(cluster: EmbeddedCluster, admin: Admin, producer: Producer) -> list[Any]:
    """The messages of the topic, read one by one, in the order of their pages."""
    admin.create_topic(TOPIC, queues=3)
    chance = random.Random(7)
    queues = [MessageQueue(TOPIC, name, number) for name in ("broker-a", "broker-b") for number in range(3)]
    for number in range(700):
        # One queue stays empty, and one has most messages.
        queue = queues[chance.choice([0, 0, 0, 0, 1, 2, 3, 4])]
        tag = chance.choices(TAGS, [4, 4, 1, 1])[0]
        properties = {"number": str(number)}
        producer.send(
            Message(TOPIC, f"Body {number}".encode(), tags=tag, keys=f"k{number}", properties=properties), queue
        )
    rows = admin.topics.status(TOPIC)
    found = [admin.messages.by_offset(row.queue, offset) for row in rows for offset in range(row.max_offset)]
    return sorted(found, key=place)


class NoPulls(Passage):
    """A broker that answers all requests but pulls."""

    def requests(self, stream: Stream) -> Stream:
        return (frame for frame in frames(stream) if Frame.read(frame).code != 11)


def place(message: Any) -> tuple[int, str, int, int]:
    return message.store_timestamp, message.broker_name, message.queue_id, message.queue_offset


def older(admin: Admin, *arguments: Any, **named: Any) -> list[Any]:
    """All messages, from the newest page to the oldest."""
    page, found = admin.messages.page(*arguments, **named), list[Any]()
    while True:
        found = [*page.messages, *found]
        if page.older is None:
            return found
        page = admin.messages.page(*arguments, **named, older_than=page.older)


def newer(admin: Admin, *arguments: Any, begin_timestamp: int = 0, **named: Any) -> list[Any]:
    page, found = admin.messages.page(*arguments, **named, begin_timestamp=begin_timestamp), list[Any]()
    while True:
        found += page.messages
        if page.newer is None:
            return found
        page = admin.messages.page(*arguments, **named, newer_than=page.newer)


Expected = Callable[[Any], bool]
FILTERS: dict[str, tuple[list[Any], dict[str, Any], Expected]] = {
    "none": ([], {}, lambda _: True),
    "a tag": (["Aa"], {}, lambda each: each.tags == "Aa"),
    "tags": (["BB || paid"], {}, lambda each: each.tags in {"BB", "paid"}),
    "no such tag": (["nothing"], {}, lambda _: False),
    "SQL92": ([MessageSelector.by_sql("number BETWEEN 100 AND 120")], {}, lambda each: 100 <= number_of(each) <= 120),
    "text of the body": ([], {"text": "bODY 12"}, lambda each: str(number_of(each)).startswith("12")),
    "a key": ([], {"text": "K699"}, lambda each: number_of(each) == 699),
    "tag and text": (["paid"], {"text": "1"}, lambda each: each.tags == "paid" and has_one(each)),
}


def number_of(message: Any) -> int:
    return int(message.properties["number"])


def has_one(message: Any) -> bool:
    return any("1" in value for value in (message.body.decode(), *message.properties.values()))


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("walk", [older, newer])
@pytest.mark.parametrize("bounds", [(7, 5.0), (100, 5.0), (20, 0.0)], ids=["small", "large", "cut"])
def test_pages_have_all_messages_once(
    admin: Admin, stored: list[Any], name: str, walk: Callable[..., list[Any]], bounds: tuple[int, float]
) -> None:
    size, seconds = bounds
    arguments, named, is_expected = FILTERS[name]
    found = walk(admin, TOPIC, *arguments, **named, max_messages=size, seconds=seconds)
    expected = [place(each) for each in stored if is_expected(each)]
    # A search that is cut goes on elsewhere in each queue: nothing is lost, but the order is that of the pages.
    assert (sorted(map(place, found)) if seconds == 0 else [place(each) for each in found]) == expected


def test_a_page_begins_at_a_time_and_leads_to_both_neighbours(admin: Admin, stored: list[Any]) -> None:
    for index in (0, 1, 333, 698, 699):
        time = stored[index].store_timestamp
        page = admin.messages.page(TOPIC, begin_timestamp=time, max_messages=10)
        expected = [place(each) for each in stored if each.store_timestamp >= time]
        assert [place(each) for each in page.messages] == expected[:10]
        before = len(stored) - len(expected)
        assert (page.older is None) == (before == 0)
        if page.older is not None:
            assert [
                place(each) for each in admin.messages.page(TOPIC, older_than=page.older, max_messages=4).messages
            ] == [place(each) for each in stored[max(0, before - 4) : before]]
    assert admin.messages.page(TOPIC, begin_timestamp=stored[-1].store_timestamp + 1).messages == []


def test_it_tells_how_much_was_searched(admin: Admin, stored: list[Any]) -> None:
    whole = admin.messages.page(TOPIC, "nothing")
    assert (whole.is_complete, whole.looked_at, whole.older) == (True, 700, None)
    cut = admin.messages.page(TOPIC, "nothing", seconds=0)
    assert not cut.is_complete
    assert 0 < cut.looked_at < 700


def test_large_messages_make_a_page_short(admin: Admin, producer: Producer) -> None:
    admin.create_topic("large", queues=2)
    for _ in range(12):
        producer.send(Message("large", random.Random(1).randbytes(4_000_000)))
    page = admin.messages.page("large")
    assert len(page.messages) == 8
    for walk in (older, newer):
        places = [place(message) for message in walk(admin, "large")]
        assert len(places) == 12
        assert places == sorted(places)


def test_a_broker_that_does_not_answer_hides_no_other(cluster: EmbeddedCluster, producer: Producer) -> None:
    second = cluster.brokers[1].address
    with Proxy(second, lambda _: NoPulls()) as proxy:
        config = ClientConfig(
            name_server=cluster.name_server,
            translate_address=lambda address: proxy.address if address == second else address,
        )
        with Admin(config=config, timeout=1) as admin:
            admin.create_topic("halved", queues=1)
            for name in ("broker-a", "broker-b"):
                producer.send(Message("halved", name.encode()), MessageQueue("halved", name, 0))
            page = admin.messages.page("halved")
            assert [message.body for message in page.messages] == [b"broker-a"]
            assert len(page.problems) == 1
            assert page.problems[0].startswith("queue 0 of broker-b was not read: ")
            # What was not read is read from the next position on.
            assert page.older is not None
            assert page.older[MessageQueue("halved", "broker-b", 0)] == 1


def test_a_broker_that_is_gone_hides_no_other(cluster: EmbeddedCluster, producer: Producer) -> None:
    second = cluster.brokers[1].address
    with Proxy() as gone:
        config = ClientConfig(
            name_server=cluster.name_server,
            translate_address=lambda address: gone.address if address == second else address,
        )
        with Admin(name_server=cluster.name_server) as admin:
            admin.create_topic("left", queues=1)
            producer.send(Message("left", b"here"), MessageQueue("left", "broker-a", 0))
        with Admin(config=config, timeout=1) as admin:
            page = admin.messages.page("left")
    assert [message.body for message in page.messages] == [b"here"]
    assert len(page.problems) == 1
    assert page.problems[0].startswith("the queues of broker-b were not read: ")


def test_wrong_questions_are_told(admin: Admin, stored: list[Any]) -> None:
    with pytest.raises(ResponseError, match="nowhere"):
        admin.messages.page("nowhere")
    with pytest.raises(ArgumentError, match="expected one of begin_timestamp, older_than and newer_than"):
        admin.messages.page(TOPIC, begin_timestamp=1, older_than={})
    with pytest.raises(ExpressionError):
        admin.messages.page(TOPIC, MessageSelector.by_sql(" "))
    with pytest.raises(ResponseError, match="number >"):
        admin.messages.page(TOPIC, MessageSelector.by_sql("number >"))
    with pytest.raises(ArgumentError, match="max_messages"):
        admin.messages.page(TOPIC, max_messages=0)
