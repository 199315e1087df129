"""Real Java clients of 4.9.4 with the embedded cluster, and its store with the real broker afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import decode
from tests.embedded.client import address_of, pull, route, send
from tests.interop.rocketmq import RocketMQ, java
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
SMALL = {
    "mappedFileSizeCommitLog": "1048576",
    "mappedFileSizeConsumeQueue": "20000",
    "maxHashSlotNum": "1000",
    "maxIndexNum": "4000",
}
OFFSET = {"consumerGroup": "G", "topic": "orders", "queueId": "0"}


def produced(name_server: str, bodies: list[str], **more: object) -> list[str]:
    """How the Java producer's sends ended."""
    lines = "\n".join(json.dumps({"topic": "orders", "body": body, "queue": 0} | more) for body in bodies)
    answer = java("4.9.4", "Produce", "--namesrv", name_server, "--spec", "-", stdin=lines)
    return [json.loads(line)["sendStatus"] for line in answer.splitlines()]


def test_mqadmin_and_the_java_producer_find_two_brokers_and_two_name_servers() -> None:
    with EmbeddedCluster(brokers=2, name_servers=2) as cluster:
        addresses = cluster.name_server
        java("4.9.4", "Admin", "updateTopic", "-n", addresses, "-c", "DefaultCluster", "-t", "orders")
        # a broker answers before it has told all name servers, and a client asks one of them
        for name_server in addresses.split(";"):
            until(lambda name_server=name_server: len(route(name_server, "orders")) == 2)  # type: ignore[misc]
        printed = java("4.9.4", "Admin", "topicRoute", "-n", addresses, "-t", "orders")
        assert "broker-a" in printed
        assert "broker-b" in printed
        listed = java("4.9.4", "Admin", "clusterList", "-n", addresses)
        assert all(broker.address in listed for broker in cluster.brokers)
        assert produced(addresses, ["1", "2", "3"]) == ["SEND_OK"] * 3


def test_real_broker_forgets_no_deleted_topic(tmp_path: Path) -> None:
    """What `test_messages_of_a_deleted_topic_are_nobodys_when_it_is_made_again` has otherwise."""
    place = {"topic": "orders", "queueId": "0"}
    with RocketMQ("4.9.4", tmp_path, *(f"{key}={value}" for key, value in SMALL.items()), clean=False) as real:
        with RemotingClient(real.broker) as client:
            real.create_topic("orders", 1)
            assert [send(real.broker, "orders", b"old").code for _ in range(3)] == [0] * 3
            client.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"})
            assert client.ask(RequestCode.GET_MAX_OFFSET, place).ext_fields == {"offset": "0"}
        real.kill9()
        real.start()
        with RemotingClient(real.broker) as client:
            until(lambda: client.ask(RequestCode.GET_MAX_OFFSET, place).ext_fields == {"offset": "3"})


def test_the_real_broker_goes_on_with_the_store_and_gives_it_back(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with EmbeddedCluster(store, config=SMALL) as cluster:
        address = address_of(cluster)
        assert produced(cluster.name_server, [f"java-{n}" for n in range(50)]) == ["SEND_OK"] * 50
        assert send(address, "orders", b"late", DELAY="4").code == 0
        assert send(address, "orders", b"half", TRAN_MSG="true", PGROUP="P").code == 0
        with RemotingClient(address) as client:
            body = b'{"groupName":"G","retryMaxTimes":3}'
            assert client.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body).code == 0
            client.send_oneway(RequestCode.UPDATE_CONSUMER_OFFSET, OFFSET | {"commitOffset": "17"})
            until(lambda: client.request(RequestCode.QUERY_CONSUMER_OFFSET, OFFSET).ext_fields == {"offset": "17"})
    with RocketMQ("4.9.4", tmp_path, *(f"{key}={value}" for key, value in SMALL.items())) as real:
        address = real.broker
        with RemotingClient(address) as client:
            assert client.request(RequestCode.QUERY_CONSUMER_OFFSET, OFFSET).ext_fields == {"offset": "17"}
            half = {"topic": "RMQ_SYS_TRANS_HALF_TOPIC", "queueId": "0"}
            assert client.request(RequestCode.GET_MAX_OFFSET, half).ext_fields == {"offset": "1"}
            groups = decode(client.request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG).body)
            assert groups["subscriptionGroupTable"]["G"]["retryMaxTimes"] == 3
        assert b"java-49" in pull(address, "orders", offset=40).body
        until(lambda: b"late" in pull(address, "orders", offset=50).body)
        assert produced(real.name_server, ["theirs"]) == ["SEND_OK"]
    with EmbeddedCluster(store, config=SMALL) as cluster:
        address = address_of(cluster)
        assert b"theirs" in pull(address, "orders", offset=51).body
        assert send(address, "orders", b"ours").code == 0
        assert b"ours" in pull(address, "orders", offset=52).body
