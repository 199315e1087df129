"""Brokers come, change and go."""

from __future__ import annotations

import json

from rmqfast.nameserver import NameServer
from tests.broker.client_doubles import Line
from tests.nameserver.conftest import Clock
from tests.nameserver.registration import ask, body, brokers, identity, register, topic, topics


def test_filter_servers_go_with_their_broker(server: NameServer, clock: Clock) -> None:
    bare = json.dumps({"topicConfigTable": {"t": topic("t")}}).encode()  # says nothing of filter servers

    def leaves_by_itself() -> None:
        ask(server, 104, identity())

    def is_silent() -> None:
        server.scan(clock.now + 120_001)

    for leave in (leaves_by_itself, is_silent):
        ask(server, 103, identity(), body(topic("t"), filters=["f:1"]))
        ask(server, 103, identity(), bare, version=36)
        assert b'["f:1"]' in ask(server, 105, {"topic": "t"}).body
        leave()
        ask(server, 103, identity(), bare, version=36)
        assert b'"filterServerTable":{}' in ask(server, 105, {"topic": "t"}).body


def test_a_connection_that_ended_before_its_registration_keeps_nothing(server: NameServer) -> None:
    channel = Line()
    channel.close()
    register(server, topic("t"), channel=channel)
    assert (brokers(server), topics(server)) == ({}, set())


def test_the_end_of_an_old_connection_spares_a_broker_that_came_back(server: NameServer) -> None:
    old, new = Line(), Line()
    register(server, topic("t"), channel=old)
    register(server, topic("t"), channel=new)
    server.channel_closed(old)
    assert topics(server) == {"t"}


def test_silent_brokers_are_forgotten_after_two_minutes(server: NameServer, clock: Clock) -> None:
    silent, loud = Line(), Line()
    register(server, topic("t"), channel=silent)
    register(server, topic("u"), name="broker-b", address="127.0.0.1:2", channel=loud)
    clock.now += 120_000
    assert server.scan(clock.now) == 0
    assert topics(server) == {"t", "u"}
    register(server, name="broker-b", address="127.0.0.1:2", channel=loud)
    assert server.scan(clock.now + 1) == 1
    assert topics(server) == {"u"}
    assert (silent.is_open, loud.is_open) == (False, True)


def test_a_broker_that_asks_for_its_version_is_alive(server: NameServer, clock: Clock) -> None:
    register(server, topic("t"), counter=1)
    clock.now += 100_000
    ask(server, 322, identity(), b'{"counter":1,"timestamp":5}')
    assert server.scan(clock.now + 100_000) == 0
    assert server.scan(clock.now + 120_001) == 1


def test_an_address_that_moved_does_not_end_the_connection_of_the_new_one(server: NameServer, clock: Clock) -> None:
    channel = Line()
    register(server, topic("t"), address="127.0.0.1:1", channel=channel)
    clock.now += 60_000
    register(server, topic("t"), address="127.0.0.1:2", channel=channel)
    assert server.scan(clock.now + 61_000) == 0
    assert channel.is_open
    assert brokers(server) == {"broker-a": {0: "127.0.0.1:2"}}


def test_a_code_that_nobody_knows_is_answered_with_3(server: NameServer) -> None:
    answer = ask(server, 9999)
    assert (answer.code, answer.remark) == (3, " request type 9999 not supported")
