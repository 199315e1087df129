"""Brokers come, change and go."""

from __future__ import annotations

import json
import zlib

import pytest

from rmqfast.nameserver import NameServer
from tests.broker.client_doubles import Line
from tests.nameserver.asking import ask
from tests.nameserver.conftest import Clock
from tests.nameserver.registration import body, brokers, identity, register, topic, topics


def queues(server: NameServer, name: str) -> int:
    route = json.loads(ask(server, 105, {"topic": name}).body)
    return int(route["queueDatas"][0]["readQueueNums"])


def test_topics_change_with_their_version_only(server: NameServer) -> None:
    register(server, topic("t", 4), counter=1)
    register(server, topic("t", 8), counter=1)
    assert queues(server, "t") == 4
    register(server, topic("t", 8), counter=2)
    assert queues(server, "t") == 8


def test_topics_that_are_not_told_again_stay(server: NameServer) -> None:
    register(server, topic("t"), topic("u"), counter=1)
    register(server, topic("v"), counter=2)
    assert topics(server) == {"t", "u", "v"}


def test_topics_of_a_slave_do_not_count(server: NameServer) -> None:
    register(server, topic("t"), broker_id=1)
    assert topics(server) == set()
    assert brokers(server) == {"broker-a": {1: "127.0.0.1:10911"}}


def test_a_slave_is_told_of_its_master(server: NameServer) -> None:
    assert register(server, broker_id=1).ext_fields == {}
    assert register(server, broker_id=0).ext_fields == {}
    assert register(server, broker_id=1).ext_fields == {"masterAddr": "127.0.0.1:10910", "haServerAddr": "ha-0:1"}


def test_a_slave_that_becomes_the_master_has_one_id(server: NameServer) -> None:
    register(server, broker_id=1, address="127.0.0.1:5")
    register(server, broker_id=0, address="127.0.0.1:5")
    assert brokers(server) == {"broker-a": {0: "127.0.0.1:5"}}


def test_brokers_share_a_topic(server: NameServer) -> None:
    register(server, topic("t", 4), name="broker-a", address="127.0.0.1:1")
    register(server, topic("t", 2), name="broker-b", address="127.0.0.1:2")
    route = json.loads(ask(server, 105, {"topic": "t"}).body)
    assert {broker["brokerName"] for broker in route["brokerDatas"]} == {"broker-a", "broker-b"}
    assert {queue["brokerName"]: queue["readQueueNums"] for queue in route["queueDatas"]} == {
        "broker-a": 4,
        "broker-b": 2,
    }


def test_the_last_address_takes_broker_cluster_and_topics_with_it(server: NameServer) -> None:
    register(server, topic("t"), topic("shared"))
    register(server, broker_id=1)
    register(server, topic("shared"), name="broker-b", cluster="d", address="127.0.0.1:2")
    ask(server, 104, identity(broker_id=0))
    assert topics(server) == {"t", "shared"}
    ask(server, 104, identity(broker_id=1))
    assert topics(server) == {"shared"}
    assert set(brokers(server)) == {"broker-b"}
    assert json.loads(ask(server, 304).body) == {"brokerAddr": "127.0.0.1:2", "topicList": ["broker-b", "d"]}


def test_clients_before_4_9_4_get_unquoted_numbers(server: NameServer) -> None:
    register(server, topic("t"))
    assert b'{0:"127.0.0.1:10910"}' in ask(server, 105, {"topic": "t"}, version=400).body
    assert b'{"0":"127.0.0.1:10910"}' in ask(server, 105, {"topic": "t"}, version=401).body
    fields = {"topic": "t", "acceptStandardJsonOnly": "true"}
    assert b'{"0":"127.0.0.1:10910"}' in ask(server, 105, fields, version=400).body


def test_brokers_before_filter_servers_send_topics_only(server: NameServer) -> None:
    wrapper = json.dumps({"dataVersion": {"counter": 1, "timestamp": 1}, "topicConfigTable": {"t": topic("t")}})
    assert ask(server, 103, identity(), wrapper.encode(), version=36).code == 0
    assert topics(server) == {"t"}
    assert ask(server, 103, identity(name="b", address="b:1"), wrapper.encode(), version=37).code == 0
    assert json.loads(ask(server, 105, {"topic": "t"}).body)["queueDatas"][0]["brokerName"] == "broker-a"


def test_a_broker_is_told_whether_its_topics_are_known(server: NameServer) -> None:
    version = b'{"counter":1,"timestamp":5}'
    assert ask(server, 322, identity(), version).ext_fields == {"changed": "true"}
    register(server, counter=1)
    answer = ask(server, 322, identity(), version)
    assert (answer.ext_fields, answer.body) == ({"changed": "false"}, version)
    answer = ask(server, 322, identity(), b'{"counter":2,"timestamp":5}')
    assert (answer.ext_fields, answer.body) == ({"changed": "true"}, version)


def test_orders_of_topics_reach_brokers_and_clients(server: NameServer) -> None:
    order = {"namespace": "ORDER_TOPIC_CONFIG", "key": "t", "value": "broker-a:4"}
    assert ask(server, 100, order).code == 0
    assert register(server, topic("t")).body == b'{"table":{"t":"broker-a:4"}}'
    assert b"orderTopicConf" not in ask(server, 105, {"topic": "t"}).body
    server.config.order_message_enable = True
    assert b'"orderTopicConf":"broker-a:4","queueDatas"' in ask(server, 105, {"topic": "t"}).body


def test_filter_servers_stand_in_the_route_of_their_broker(server: NameServer) -> None:
    ask(server, 103, identity(), body(topic("t"), filters=["f:1", "f:2"]))
    assert b'"filterServerTable":{"127.0.0.1:10910":["f:1","f:2"]}' in ask(server, 105, {"topic": "t"}).body
    ask(server, 103, identity(), body(topic("t"), filters=[]))
    assert b'"filterServerTable":{}' in ask(server, 105, {"topic": "t"}).body


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


@pytest.mark.parametrize("checksum", ["0", str(zlib.crc32(b"{}") & 0x7FFFFFFF)])
def test_the_checksum_is_compared_where_there_is_one(server: NameServer, checksum: str) -> None:
    assert ask(server, 103, identity() | {"bodyCrc32": checksum}, b"{}").code == 0
    answer = ask(server, 103, identity() | {"bodyCrc32": "7"}, b"{}")
    assert (answer.code, answer.remark) == (1, "crc32 not match")


def test_a_broker_goes_with_its_connection(server: NameServer) -> None:
    master, slave = Line(), Line()
    register(server, topic("t"), channel=master)
    register(server, broker_id=1, channel=slave)
    server.channel_closed(Line())
    assert brokers(server) == {"broker-a": {0: "127.0.0.1:10910", 1: "127.0.0.1:10911"}}
    server.channel_closed(master)
    assert brokers(server) == {"broker-a": {1: "127.0.0.1:10911"}}
    server.channel_closed(slave)
    assert (brokers(server), topics(server)) == ({}, set())


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


def test_write_permission_is_wiped_until_the_broker_says_something_new(server: NameServer) -> None:
    register(server, topic("t", perm=7), topic("u"), counter=1)

    def perm() -> int:
        return int(json.loads(ask(server, 105, {"topic": "t"}).body)["queueDatas"][0]["perm"])

    assert ask(server, 205, {"brokerName": "broker-a"}).ext_fields == {"wipeTopicCount": "2"}
    assert perm() == 5
    register(server, topic("t", perm=7), counter=1)
    assert perm() == 5
    assert ask(server, 327, {"brokerName": "broker-a"}).ext_fields == {"addTopicCount": "2"}
    assert perm() == 6
    register(server, topic("t", perm=7), counter=2)
    assert perm() == 7


def test_units_are_told_by_their_flags(server: NameServer) -> None:
    register(server, *[topic(f"t{flag}", topicSysFlag=flag) for flag in range(4)])
    found = [set(json.loads(ask(server, code).body)["topicList"]) for code in (311, 312, 313)]
    assert found == [{"t1", "t3"}, {"t2", "t3"}, {"t2"}]


def test_a_code_that_nobody_knows_is_answered_with_3(server: NameServer) -> None:
    answer = ask(server, 9999)
    assert (answer.code, answer.remark) == (3, " request type 9999 not supported")


def test_every_code_of_a_name_server_is_known(server: NameServer) -> None:
    codes = {100, 101, 102, 103, 104, 105, 106, 205, 206, 216, 219, 224, 304, 311, 312, 313, 318, 319, 322, 327}
    assert set(map(int, server.processors)) == codes
