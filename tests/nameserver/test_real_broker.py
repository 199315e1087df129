"""A real broker and the real mqadmin with our name server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import RemotingClient, fastjson
from tests.interop.rocketmq import RocketMQ, free_ports, java
from tests.waiting import until

pytestmark = pytest.mark.long

SYSTEM_TOPICS = {
    "SCHEDULE_TOPIC_XXXX", "DefaultCluster_REPLY_TOPIC", "BenchmarkTest", "OFFSET_MOVED_EVENT", "broker-a", "TBW102",
    "SELF_TEST_TOPIC", "DefaultCluster",
}  # fmt: skip


class Lab:
    """Two name servers of ours, a real broker that knows of both, and mqadmin."""

    def __init__(self, directory: Path, version: str) -> None:
        self.servers = [
            NameServer(NamesrvConfig(listen_port=0, kv_config_path=str(directory / f"kv-{n}.json"),
                                     config_store_path=str(directory / f"namesrv-{n}.properties")))
            for n in range(2)
        ]  # fmt: skip
        self.addresses = [server.start() for server in self.servers]
        (broker_port,) = free_ports(1)
        self.broker = RocketMQ(
            version,
            directory,
            f"namesrvAddr={';'.join(self.addresses)}",
            # 5.3.3 compresses as well, but its header denies it: no name server understands that
            f"compressedRegister={str(version == '4.9.4').lower()}",
            "mappedFileSizeCommitLog=1048576",
            "mappedFileSizeConsumeQueue=2000",
            ports=(int(self.addresses[0].rpartition(":")[2]), broker_port),
        )
        self.broker.start()

    def admin(self, *command: str) -> str:
        return java("4.9.4", "Admin", *command, "-n", self.addresses[0], seconds=60)

    def topics(self, number: int = 0) -> set[str]:
        with RemotingClient(self.addresses[number]) as client:
            return set(fastjson.decode(client.ask(206).body)["topicList"])

    def close(self) -> None:
        self.broker.kill9()
        for server in self.servers:
            server.stop()


@pytest.fixture(params=["4.9.4", "5.3.3", "5.5.0"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path, request.param)
    yield lab
    lab.close()


def test_a_real_broker_is_known_is_administered_and_goes(lab: Lab) -> None:
    for number in range(2):
        until(lambda number=number: lab.topics(number) >= SYSTEM_TOPICS)  # type: ignore[misc]
    assert "DefaultCluster    broker-a                0 " in lab.admin("clusterList")
    lab.admin("updateTopic", "-c", "DefaultCluster", "-t", "wire", "-r", "3", "-w", "3")
    for number in range(2):
        until(lambda number=number: "wire" in lab.topics(number))  # type: ignore[misc]
    assert '"readQueueNums":3' in lab.admin("topicRoute", "-t", "wire")

    def is_wiped() -> bool:
        # a registration that was on its way may have given it the right back
        assert "OK, " in lab.admin("wipeWritePerm", "-b", "broker-a")
        return '"perm":4' in lab.admin("topicRoute", "-t", "wire")

    until(is_wiped)
    assert "OK, " in lab.admin("addWritePerm", "-b", "broker-a")
    assert '"perm":6' in lab.admin("topicRoute", "-t", "wire")
    assert "orderConf=[broker-a:3]" in lab.admin("updateOrderConf", "-t", "wire", "-m", "put", "-v", "broker-a:3")
    assert "orderConf=[broker-a:3]" in lab.admin("updateOrderConf", "-t", "wire", "-m", "get")
    assert "success" in lab.admin("updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "true")
    assert '"orderTopicConf":"broker-a:3"' in lab.admin("topicRoute", "-t", "wire")
    assert "orderMessageEnable" in lab.admin("getNamesrvConfig")
    assert "success" in lab.admin("deleteTopic", "-c", "DefaultCluster", "-t", "wire")
    assert "wire" not in lab.admin("topicList").split()
    lab.broker.kill9()
    for number in range(2):
        until(lambda number=number: lab.topics(number) == set())  # type: ignore[misc]
