"""Replies as brokers push them, and the requests that they end: no broker."""

from __future__ import annotations

import threading
import zlib
from typing import Any

import pytest

from rmqfast.client.instance.request_futures import RequestFutures, reply_of
from rmqfast.errors import (
    ChannelClosedError,
    RemotingProtocolError,
    RequestTimeoutError,
    ResponseError,
    RmqError,
)
from rmqfast.remoting import Request
from tests.waiting import PATIENCE, until

HEADER = {
    "producerGroup": "g",
    "topic": "c_REPLY_TOPIC",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "4",
    "queueId": "3",
    "sysFlag": "0",
    "bornTimestamp": "5",
    "flag": "-7",
    "properties": "MSG_TYPE\x01reply\x02CORRELATION_ID\x017\x02UNIQ_KEY\x01AB",
    "reconsumeTimes": "2",
    "bornHost": "/10.1.2.3:4567",
    "storeHost": "10.0.0.1:10911",
    "storeTimestamp": "6",
}


class Peer:
    remote_address = "10.0.0.1:10911"


def pushed(body: bytes = b"yes", **changed: str) -> Request:
    return Request(326, {**HEADER, **changed}, body, Peer())  # type: ignore[arg-type]


def test_a_reply_has_all_that_the_header_says() -> None:
    reply = reply_of(HEADER, b"yes", now=9)
    assert (reply.topic, reply.queue_id, reply.flag, reply.body) == ("c_REPLY_TOPIC", 3, -7, b"yes")
    assert (reply.born_timestamp, reply.store_timestamp, reply.reconsume_times) == (5, 6, 2)
    assert (reply.born_host, reply.store_host, reply.msg_id) == ("10.1.2.3:4567", "10.0.0.1:10911", "AB")
    expected = {"MSG_TYPE": "reply", "CORRELATION_ID": "7", "UNIQ_KEY": "AB", "ARRIVE_TIME": "9"}
    assert reply.properties == expected
    assert reply.broker_name is None


@pytest.mark.parametrize("properties", ["", "a\x01b", "a\x01b\x02"])
def test_properties_may_end_or_not(properties: str) -> None:
    reply = reply_of({**HEADER, "properties": properties}, b"x", now=9)
    assert reply.properties == ({"a": "b"} if properties else {}) | {"ARRIVE_TIME": "9"}


def test_addresses_of_ipv6_and_compressed_bodies_are_read() -> None:
    header = {**HEADER, "sysFlag": "1", "bornHost": "/[fe80::1]:5", "storeHost": "::1:10911"}
    reply = reply_of(header, zlib.compress(b"large" * 999), now=9)
    assert reply.body == b"large" * 999
    assert (reply.born_host, reply.store_host) == ("[fe80::1]:5", "[::1]:10911")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"bornHost": "nowhere"}, RemotingProtocolError),
        ({"bornHost": "10.0.0.1:99999999999"}, RemotingProtocolError),
        ({"queueId": "99999999999"}, RemotingProtocolError),
        ({"topic": "t" * 300}, RemotingProtocolError),
        ({"properties": "p" * 40_000}, RemotingProtocolError),
        ({"sysFlag": "x"}, ResponseError),
    ],
)
def test_what_is_no_reply_is_refused_and_ends_nothing(changed: dict[str, str], error: type[RmqError]) -> None:
    with pytest.raises(error):
        reply_of({**HEADER, **changed}, b"x", now=9)
    answer = RequestFutures().receive(pushed(b"x", **changed))
    assert (answer.code, answer.remark) == (1, "process reply message fail")


def test_a_request_ends_once() -> None:
    futures, ended = RequestFutures(), list[Any]()
    one, other = futures.open(ended.append), futures.open(ended.append)
    told = pushed(properties=f"CORRELATION_ID\x01{one}")
    assert futures.receive(told).code == 0
    assert futures.receive(told).code == 0  # as Java's: nobody waits any more
    assert [reply.body for reply in ended] == [b"yes"]
    assert not futures.end(one, ChannelClosedError("late"))
    assert futures.forget(other)
    assert futures.receive(pushed(properties=f"CORRELATION_ID\x01{other}")).code == 0
    assert len(ended) == 1


def test_who_does_not_wait_is_told_on_a_thread_of_its_own_even_of_the_end_of_time() -> None:
    futures, ended = RequestFutures(), list[Any]()

    def take(outcome: Any) -> None:
        ended.append((outcome, threading.current_thread().name))
        raise ValueError("a defect of a callback")

    answered = futures.open(take, timeout=PATIENCE)
    futures.receive(pushed(properties=f"CORRELATION_ID\x01{answered}"))
    until(lambda: len(ended) == 1)
    futures.open(take, timeout=0.01)
    until(lambda: len(ended) == 2)
    (reply, thread), (error, same) = ended
    assert (reply.body, thread, same) == (b"yes", "rmqfast-replies", "rmqfast-replies")
    assert isinstance(error, RequestTimeoutError)
    assert error.response_code == 10006
    assert len(futures) == 0
    futures.close()


def test_the_end_of_a_client_ends_its_requests() -> None:
    futures, ended = RequestFutures(), list[Any]()
    futures.open(ended.append)
    futures.open(ended.append, timeout=PATIENCE)
    futures.close()
    until(lambda: len(ended) == 2)
    futures.open(ended.append)
    assert [type(each) for each in ended] == [ChannelClosedError] * 3
