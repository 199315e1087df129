"""Dead letters: listed, and consumed once more by their group alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message
from rmqfast.admin import Admin
from rmqfast.client.producer import Producer
from rmqfast.client.push import ConsumeConcurrentlyStatus
from rmqfast.errors import ArgumentError, ResponseError
from tests.client.push.listening import Seen, consumer
from tests.waiting import until

BROKERS = ("broker-a", "broker-b")


@pytest.fixture(scope="module")
def cluster(face: str) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=2) as running:
        yield running


def kill(cluster: EmbeddedCluster, admin: Admin, producer: Producer, topic: str, group: str, *bodies: str) -> list[str]:
    """Has a group give up messages of a topic; their ids by the producer."""
    admin.create_topic(topic, queues=1)
    sent = [producer.send(Message(topic, body.encode(), tags="t", keys=f"k{body}", flag=7)).msg_id for body in bodies]
    later = ConsumeConcurrentlyStatus.RECONSUME_LATER
    listener = Seen(lambda _messages, _context: later)
    options = {"max_reconsume_times": 0, "consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}
    with consumer(cluster, group, listener, topic, **options):
        until(lambda: len(letters(admin, group, max_messages=None)) == len(bodies))
    return sent


def letters(admin: Admin, group: str, **more: Any) -> list[Any]:
    """The dead letters of a group; none where none of its members has come yet."""
    try:
        return admin.dead_letters.of_group(group, **more)
    except ResponseError as error:
        assert error.code == 17  # noqa: PT017 - what comes sooner or later is waited for
        return []


def test_dead_letters_are_listed_with_where_they_come_from(
    cluster: EmbeddedCluster, admin: Admin, producer: Producer
) -> None:
    bodies = [str(number) for number in range(70)]  # more than an answer has
    sent = kill(cluster, admin, producer, "given_up", "quitters", *bodies)
    found = admin.dead_letters.of_group("quitters", max_messages=None)
    assert sorted(each.body.decode() for each in found) == sorted(bodies)
    assert {each.properties["RETRY_TOPIC"] for each in found} == {"given_up"}
    assert {each.msg_id for each in found} == set(sent)
    assert {each.broker_name for each in found} == set(BROKERS)
    assert len(admin.dead_letters.of_group("quitters")) == 64
    times = sorted(each.store_timestamp for each in found)
    assert admin.dead_letters.of_group("quitters", begin_timestamp=times[-1] + 1) == []
    assert admin.dead_letters.of_group("quitters", end_timestamp=times[0] - 1) == []


def test_a_dead_letter_is_consumed_once_more_by_its_group_alone(
    cluster: EmbeddedCluster, admin: Admin, producer: Producer
) -> None:
    topic, group = "resent", "forgiving"
    (key,) = kill(cluster, admin, producer, topic, group, "x")
    (letter,) = admin.dead_letters.of_group(group)
    seen = Seen()
    with consumer(cluster, group, seen, topic):
        sent = admin.dead_letters.resend(letter)
        assert (sent.queue.topic, sent.msg_id) == (f"%RETRY%{group}", key)
        seen.wait(1)
    (message,) = seen.messages
    assert (message.topic, message.body, message.tags, message.keys) == (topic, b"x", "t", "kx")
    assert (message.msg_id, message.reconsume_times, message.flag) == (key, 0, 7)
    assert sum(row.max_offset for row in admin.topics.status(topic)) == 1, "no other group gets it"
    assert admin.dead_letters.of_group(group) == [letter], "it stays where it is"


def test_what_is_given_up_again_is_a_dead_letter_again(
    cluster: EmbeddedCluster, admin: Admin, producer: Producer
) -> None:
    topic, group = "twice", "stubborn"
    kill(cluster, admin, producer, topic, group, "x")
    later = ConsumeConcurrentlyStatus.RECONSUME_LATER
    with consumer(cluster, group, Seen(lambda _messages, _context: later), topic, max_reconsume_times=0):
        admin.dead_letters.resend(admin.dead_letters.of_group(group)[0])
        until(lambda: len(admin.dead_letters.of_group(group)) == 2)
    first, second = admin.dead_letters.of_group(group)
    assert (second.msg_id, second.reconsume_times, second.body) == (first.msg_id, 1, b"x")


def test_a_group_without_dead_letters_has_none_and_one_that_is_not_there_is_an_error(
    admin: Admin, producer: Producer
) -> None:
    admin.create_group("flawless")
    assert admin.dead_letters.of_group("flawless") == []
    with pytest.raises(ResponseError, match="%DLQ%nobody"):
        admin.dead_letters.of_group("nobody")
    admin.create_topic("alive", queues=1)
    message = admin.view_message(producer.send(Message("alive", b"x")).offset_msg_id)
    with pytest.raises(ArgumentError, match=r"expected one of dead_letters, got .* of the topic alive"):
        admin.dead_letters.resend(message)
