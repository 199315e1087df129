"""What a client may bring into being, and how large its requests may be."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.broker.clients.name_quota import NameQuota
from rmqfast.errors import ResponseError
from rmqfast.remoting import RemotingClient, RequestCode, Response
from rmqfast.remoting.fastjson import decode, encode
from tests.broker.client_doubles import Line
from tests.broker.live_server import Wire
from tests.embedded.client import send

QUOTAS = {"newNamesBurst": "5", "newNamesPerSecond": "0", "maxTopicCount": "40", "maxConsumerOffsetCount": "12"}
BODY = 15 << 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """A broker that lets a connection make five names."""
    with EmbeddedCluster(config=QUOTAS) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: EmbeddedCluster) -> Iterator[RemotingClient]:
    with RemotingClient(cluster.brokers[0].address) as client:
        yield client


def heartbeat(client: RemotingClient, *groups: str) -> Response:
    wanted = [{"topic": "t", "subString": "*", "subVersion": 1}]
    kinds = {"consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"}
    consumers = [{"groupName": group, "subscriptionDataSet": wanted} | kinds for group in groups]
    return client.request(RequestCode.HEART_BEAT, body=encode({"clientID": "c", "consumerDataSet": consumers}))


def commit(client: RemotingClient, group: str, topic: str = "t") -> Response:
    fields = {"consumerGroup": group, "topic": topic, "queueId": "0", "commitOffset": "1"}
    return client.request(RequestCode.UPDATE_CONSUMER_OFFSET, fields)


def test_a_heartbeat_with_too_many_new_groups_is_refused_as_a_whole(client: RemotingClient) -> None:
    assert heartbeat(client, "h1", "h2", "h3").code == 0
    refused = heartbeat(client, "h3", "h4", "h5", "h6")
    assert refused.code == 2
    assert "[QUOTA] new topics and groups of a connection: expected at most 5 at once" in str(refused.remark)
    groups = decode(client.request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG).body)["subscriptionGroupTable"]
    assert {"h1", "h2", "h3"} <= groups.keys()
    assert {"h4", "h5", "h6"}.isdisjoint(groups)
    assert heartbeat(client, "h1", "h2", "h3", "h4", "h5").code == 0  # those that are there cost nothing


def test_a_client_makes_so_many_topics_and_others_go_on(cluster: EmbeddedCluster, client: RemotingClient) -> None:
    fields = {"a": "p", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "i": "", "j": "0"}
    codes = [
        client.request(RequestCode.SEND_MESSAGE_V2, fields | {"b": f"s{number}"}, b"x").code for number in range(7)
    ]
    assert codes == [0] * 5 + [2] * 2
    assert client.request(RequestCode.SEND_MESSAGE_V2, fields | {"b": "s0"}, b"x").code == 0
    assert send(cluster.brokers[0].address, "another", b"x").code == 0


def test_offsets_of_many_groups_are_refused_and_those_of_others_are_kept(
    cluster: EmbeddedCluster, client: RemotingClient
) -> None:
    answers = [commit(client, f"o{number}") for number in range(7)]
    assert [answer.code for answer in answers] == [0] * 5 + [2] * 2
    remark = "[QUOTA] new consumer offsets of a connection: expected at most 5 at once and 0 a second, got more"
    assert answers[-1].remark == remark
    assert commit(client, "o0").code == 0
    with RemotingClient(cluster.brokers[0].address) as other:
        assert [commit(other, f"p{number}").code for number in range(5)] == [0] * 5
    with RemotingClient(cluster.brokers[0].address) as other:
        answers = [commit(other, f"q{number}") for number in range(5)]
        assert [answer.code for answer in answers] == [0] * 2 + [2] * 3
        assert "consumer offsets of a broker: expected at most 12 groups and topics" in str(answers[-1].remark)


def test_there_is_an_end_to_all_topics(cluster: EmbeddedCluster) -> None:
    with RemotingClient(cluster.brokers[0].address) as client:
        made = {"readQueueNums": "1", "writeQueueNums": "1", "perm": "6", "topicFilterType": "SINGLE_TAG"}

        def make(number: int) -> Response:
            return client.request(RequestCode.UPDATE_AND_CREATE_TOPIC, made | {"topic": f"admin{number}"})

        answers = [make(number) for number in range(40)]
        refused = next(answer for answer in answers if answer.code)
        assert str(refused.remark).startswith("[QUOTA] topics of a broker: expected at most 40, got 41 (maxTopicCount)")


def test_what_was_spent_comes_back_with_time_and_a_host_has_its_own_budget() -> None:
    now = 0.0
    quota, lines = NameQuota(10, 2, lambda: now), [Line("192.0.2.7:1"), Line("192.0.2.7:2"), Line("192.0.2.8:1")]

    def taken(line: Line) -> int:
        for count in range(1000):
            try:
                quota.take(line)
            except ResponseError:
                return count
        return 1000

    assert [taken(lines[0]), taken(lines[1]), taken(lines[2])] == [10, 10, 10]
    now = 2.0
    assert taken(lines[0]) == 4
    for port in range(10):
        taken(Line(f"192.0.2.7:{port + 10}"))
    with pytest.raises(ResponseError, match="of a host: expected at most 100 at once and 20 a second"):
        quota.take(Line("192.0.2.7:99"))
    quota.take(lines[2])
    quota.forget(lines[0])


def begin_of_frame(code: int, body: int) -> bytes:
    """The length, the mark and the header of a request with a body of so many bytes, which do not follow."""
    header = encode({"code": code, "flag": 0, "opaque": 7, "version": 401, "language": "JAVA"})
    return struct.pack(">II", 4 + len(header) + body, len(header)) + header


@pytest.mark.parametrize("server", ["broker", "name server"])
def test_a_body_that_is_too_long_is_refused_before_it_comes(cluster: EmbeddedCluster, server: str) -> None:
    address = cluster.brokers[0].address if server == "broker" else cluster.name_server
    for code in (int(code) for code in RequestCode if code != RequestCode.REGISTER_BROKER):
        with Wire(address) as wire:
            wire.socket.sendall(begin_of_frame(code, BODY))
            header, _ = wire.answer()  # though not a byte of the body was sent
            assert header["code"] in {1, 13}, (code, header)
            assert f"got {BODY}" in header["remark"] or header["code"] == 13


def test_the_connection_of_a_body_that_was_refused_serves_on(cluster: EmbeddedCluster) -> None:
    with Wire(cluster.brokers[0].address) as wire:
        for _ in range(3):
            wire.socket.sendall(begin_of_frame(34, BODY) + bytes(BODY) + begin_of_frame(28, 0))
            assert [wire.answer()[0]["code"] for _ in range(2)] == [1, 0]
