"""A real broker and the real mqadmin with our name server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import RemotingClient, fastjson
from tests.interop.rocketmq import build, free_ports, java
from tests.waiting import until

pytestmark = pytest.mark.long

INTEROP = Path(__file__).parents[1] / "interop"
OPENS = [
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    *[
        f"--add-opens=java.base/{each}=ALL-UNNAMED"
        for each in ("jdk.internal.ref", "java.nio", "sun.nio.ch", "java.util")
    ],
]
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
        self.version = version
        self.broker = self._start(directory)

    def admin(self, *command: str) -> str:
        return java("4.9.4", "Admin", *command, "-n", self.addresses[0], seconds=60)

    def topics(self, number: int = 0) -> set[str]:
        with RemotingClient(self.addresses[number]) as client:
            return set(fastjson.decode(client.ask(206).body)["topicList"])

    def await_registered(self) -> None:
        """Until both know the broker and its topics."""

        def is_registered() -> bool:
            assert self.broker.poll() is None, self.output.read_text()[-3000:]
            return all(self.topics(number) >= SYSTEM_TOPICS for number in range(2))

        until(is_registered, lambda: self.output.read_text()[-3000:], patience=180)

    def close(self) -> None:
        self.broker.kill()
        self.broker.wait(30)
        for server in self.servers:
            server.stop()

    def _start(self, directory: Path) -> subprocess.Popen[bytes]:
        build(self.version)
        (directory / "conf").mkdir()
        for name in ("logback_broker.xml", "rmq.broker.logback.xml"):
            (directory / "conf" / name).write_text("<configuration/>")
        conf = directory / "broker.conf"
        conf.write_text(self._conf(directory))
        target = INTEROP / "target" / self.version
        command = ["java", "-Xmx512m", *OPENS, f"-Duser.home={directory}", "-cp", f"{target}/classes:{target}/lib/*"]
        full = [
            "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.99",
            "-Drocketmq.broker.diskSpaceCleanForciblyRatio=0.98",
        ]
        self.output = directory / "broker.out"
        with self.output.open("wb") as sink:
            return subprocess.Popen(
                [*command, *full, "org.apache.rocketmq.broker.BrokerStartup", "-c", conf],
                env=os.environ | {"ROCKETMQ_HOME": str(directory)},
                stdout=sink,
                stderr=sink,
            )

    def _conf(self, directory: Path) -> str:
        properties: dict[str, object] = {
            "brokerClusterName": "DefaultCluster", "brokerName": "broker-a", "brokerIP1": "127.0.0.1",
            "bindAddress": "127.0.0.1", "listenPort": free_ports(1)[0], "namesrvAddr": ";".join(self.addresses),
            "storePathRootDir": directory / "store", "storePathCommitLog": directory / "store" / "commitlog",
            "mappedFileSizeCommitLog": 1 << 20, "mappedFileSizeConsumeQueue": 2000,
        }  # fmt: skip
        # 5.3.3 compresses as well, but its header denies it: no name server understands that
        properties["compressedRegister"] = str(self.version == "4.9.4").lower()
        return "".join(f"{key}={value}\n" for key, value in properties.items())


@pytest.fixture(params=["4.9.4", "5.3.3"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path, request.param)
    yield lab
    lab.close()


def test_a_real_broker_is_known_is_administered_and_goes(lab: Lab) -> None:
    lab.await_registered()
    assert "DefaultCluster    broker-a                0 " in lab.admin("clusterList")
    lab.admin("updateTopic", "-c", "DefaultCluster", "-t", "wire", "-r", "3", "-w", "3")
    for number in range(2):
        until(lambda number=number: "wire" in lab.topics(number))  # type: ignore[misc]
    assert '"readQueueNums":3' in lab.admin("topicRoute", "-t", "wire")
    assert "OK, " in lab.admin("wipeWritePerm", "-b", "broker-a")
    assert '"perm":4' in lab.admin("topicRoute", "-t", "wire")
    assert "OK, " in lab.admin("addWritePerm", "-b", "broker-a")
    assert '"perm":6' in lab.admin("topicRoute", "-t", "wire")
    assert "orderConf=[broker-a:3]" in lab.admin("updateOrderConf", "-t", "wire", "-m", "put", "-v", "broker-a:3")
    assert "orderConf=[broker-a:3]" in lab.admin("updateOrderConf", "-t", "wire", "-m", "get")
    assert "success" in lab.admin("updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "true")
    assert '"orderTopicConf":"broker-a:3"' in lab.admin("topicRoute", "-t", "wire")
    assert "orderMessageEnable" in lab.admin("getNamesrvConfig")
    assert "success" in lab.admin("deleteTopic", "-c", "DefaultCluster", "-t", "wire")
    assert "wire" not in lab.admin("topicList").split()
    lab.broker.kill()
    for number in range(2):
        until(lambda number=number: lab.topics(number) == set())  # type: ignore[misc]
