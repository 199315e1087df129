"""Which name server is asked."""

from __future__ import annotations

import random

import pytest

from rmqfast.client.instance.name_servers import NameServers
from rmqfast.errors import ClientError, RemotingConnectError
from rmqfast.remoting import Response
from tests.client.instance.doubles import FakeConnections

THREE = ["a:1", "b:1", "c:1"]


def test_the_same_one_is_asked_until_it_does_not_answer_then_the_next_one_stays() -> None:
    connections = FakeConnections(dict.fromkeys(THREE, Response()))
    servers = NameServers(THREE, connections, chance=random.Random(1))
    first, second, _ = servers.addresses
    for _ in range(3):
        servers.request(105)
    assert connections.asked == [first] * 3
    del connections.answers[first]
    for _ in range(3):
        servers.request(105)
    assert connections.asked[3:] == [first, second, second, second]


def test_clients_do_not_all_ask_the_same_one() -> None:
    chosen = {NameServers(THREE, FakeConnections(), chance=random.Random(seed)).chosen for seed in range(20)}
    assert chosen == set(THREE)


def test_an_error_that_is_an_answer_is_not_asked_for_again() -> None:
    connections = FakeConnections(dict.fromkeys(THREE, Response(17, "no such topic")))
    assert NameServers(THREE, connections).request(105).code == 17
    assert len(connections.asked) == 1


def test_where_none_answers_all_are_named() -> None:
    with pytest.raises(RemotingConnectError) as caught:
        NameServers(THREE, FakeConnections()).request(105)
    said = [f"connect to <{address}> failed: {address} does not answer" for address in THREE]
    assert sorted(str(caught.value).split("; ")) == said


def test_without_a_name_server_it_is_said_how_to_give_one() -> None:
    with pytest.raises(ClientError, match=r"No name server address, please set it\.\n.*NAMESRV_ADDR") as caught:
        NameServers([], FakeConnections()).request(105)
    assert caught.value.response_code == 10004
