"""Which name server is asked, by the connections of Python."""

from __future__ import annotations

import pytest

from rmqfast._native import NameServers
from rmqfast.errors import ClientError, RemotingConnectError
from rmqfast.remoting import Response
from tests.client.instance.doubles import FakeConnections

THREE = ["a:1", "b:1", "c:1"]


def test_the_same_one_is_asked_until_it_does_not_answer_then_the_next_one_stays() -> None:
    connections, warnings = FakeConnections(dict.fromkeys(THREE, Response())), list[str]()
    servers = NameServers(THREE, connections, warnings.append)
    first, second, _ = servers.addresses
    assert sorted(servers.addresses) == THREE
    for _ in range(3):
        servers.request(105)
    assert connections.asked == [first] * 3
    del connections.answers[first]
    for _ in range(3):
        servers.request(105)
    assert connections.asked[3:] == [first, second, second, second]
    assert (servers.chosen, warnings) == (second, [f"name server {first} does not answer: {second} is asked"])


def test_an_error_that_is_an_answer_is_not_asked_for_again() -> None:
    connections = FakeConnections(dict.fromkeys(THREE, Response(17, "no such topic")))
    assert NameServers(THREE, connections, print).request(105).code == 17
    assert len(connections.asked) == 1


def test_where_none_answers_all_are_named() -> None:
    with pytest.raises(RemotingConnectError) as caught:
        NameServers(THREE, FakeConnections(), lambda _: None).request(105)
    said = [f"connect to <{address}> failed: {address} does not answer" for address in THREE]
    assert sorted(str(caught.value).split("; ")) == said


def test_without_a_name_server_it_is_said_how_to_give_one() -> None:
    with pytest.raises(ClientError, match=r"No name server address, please set it\.\n.*NAMESRV_ADDR") as caught:
        NameServers([], FakeConnections(), print).request(105)
    assert caught.value.response_code == 10004
