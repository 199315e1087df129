"""`rmqfast mqadmin` prints what mqadmin of 4.9.4 prints, byte by byte; and tells what it does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from rmqfast import EmbeddedCluster, Message, MessageQueue, Producer, PushConsumer
from rmqfast.client.consumer import ConsumeFromWhere
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushOptions
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.version_names import version_name
from tests.broker.interop.cluster import SCENARIO, Cluster, cluster_of
from tests.broker.interop.mqadmin import Admin
from tests.interop.rocketmq import running
from tests.waiting import until

from .command_line import run

#: Java's mqadmin and ours get each of these, one after the other.
SEQUENCE = """
updateTopic -c DefaultCluster -t mq_a -r 2 -w 3
updateTopic -b {broker} -t mq_b -r 2 -w 2 -p 4 -u true -s true
updateTopic -c DefaultCluster -t mq_o -r 2 -w 2 -o true
topicRoute -t mq_a
topicRoute -t mq_o
topicRoute -t mq_b -l
topicRoute --topic mq_b --list
topicStatus -t mq_a
topicStatus -t mq_orders
topicList
topicList -c
updateSubGroup -c DefaultCluster -g mq_g1 -s true -m true -d true -q 2 -r 3 -i 0 -w 1 -a false
updateSubGroup -b {broker} -g mq_g2
consumerProgress
consumerProgress -g mq_online
consumerProgress -g mq_online -s true
clusterList
clusterList -m
brokerStatus -b {broker}
brokerStatus -c DefaultCluster
updateBrokerConfig -b {broker} -k maxTransferCountOnMessageInMemory -v 40
updateBrokerConfig -c DefaultCluster -k maxTransferCountOnMessageInMemory -v 32
resetOffsetByTime -g mq_offline -t mq_orders -s 0
resetOffsetByTime -g mq_offline -t mq_orders -s now
resetOffsetByTime -g mq_offline -t mq_orders -s 2026-11-30#09:15:00:000 -f false
resetOffsetByTime -g mq_online -t mq_orders -s now
consumerProgress -g mq_offline
deleteTopic -c DefaultCluster -t mq_a
deleteSubGroup -c DefaultCluster -g mq_g1
deleteSubGroup -b {broker} -g mq_g2 -r true
""".strip().splitlines()
#: Commands whose figures change with time.
MOVING = ("clusterList", "brokerStatus")


@pytest.fixture(scope="module", params=["ours", pytest.param("4.9.4", marks=pytest.mark.real)])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_of(request.param, tmp_path_factory.mktemp("mqadmin"), SCENARIO) as running_cluster:
        yield running_cluster


@pytest.fixture(scope="module")
def java(cluster: Cluster) -> Iterator[Admin]:
    with running("4.9.4", "Admin", "--stdin", log=cluster.directory / "mqadmin.log") as process:
        yield Admin(process, cluster.name_server)


def consumer(cluster: Cluster, group: str) -> PushConsumer:
    """A member that consumes all messages of the topic."""
    options = PushOptions(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    made = PushConsumer(group, name_server=cluster.name_server, options=options)
    made.subscribe("mq_orders")
    made.register_message_listener(lambda *_: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    return made


def masked(line: str, text: str) -> str:
    """The text without figures that change with time, and without the spaces that fill up to them."""
    if line.split(maxsplit=1)[0] in MOVING or line == "consumerProgress":
        return re.sub(r" *[\d.]+", " N", text)
    return re.sub(r"(?<=Consume TPS: )[\d.]+", "N", text)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_it_prints_what_java_prints(cluster: Cluster, java: Admin) -> None:
    java(["updateTopic", "-c", "DefaultCluster", "-t", "mq_orders", "-r", "3", "-w", "3"])
    until(lambda: '"queueDatas"' in java(["topicRoute", "-t", "mq_orders"]), patience=120)
    with Producer("mq_producers", name_server=cluster.name_server) as producer:
        for number in range(10):
            producer.send(Message("mq_orders", b"x"), MessageQueue("mq_orders", "broker-a", number % 3))
    with consumer(cluster, "mq_offline"):
        until(lambda: "Diff Total: 0" in java(["consumerProgress", "-g", "mq_offline"]), patience=120)
    with consumer(cluster, "mq_online"):
        until(lambda: "Diff Total: 0" in java(["consumerProgress", "-g", "mq_online"]), patience=120)
        for line in SEQUENCE:
            words = line.format(broker=cluster.broker).split()
            if words[0] == "resetOffsetByTime":
                java(words)  # it also prints the offsets before
            theirs = java(words)
            done = run("mqadmin", *words, "-n", cluster.name_server)
            assert done.exit_code == 0, (line, done.stderr)
            assert masked(line, done.stdout) == masked(line, theirs), line


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running_cluster:
        yield running_cluster


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("nosuch", 2, "mqadmin: expected one of brokerStatus, clusterList, "),
        ("topicStatus", 2, "mqadmin topicStatus: the following arguments are required: -t/--topic"),
        ("topicStatus -t x --nosuch 1", 2, "mqadmin topicStatus: unrecognized arguments: --nosuch 1"),
        ("updateTopic -t x", 2, "mqadmin updateTopic: expected -b host:port or -c CLUSTER"),
        ("updateTopic -t x -c Nope", 1, "there is no cluster Nope; the name server knows DefaultCluster"),
        ("deleteTopic -t x -c Nope", 1, "there is no cluster Nope"),
        ("topicStatus -t nope", 1, "CODE: 17  DESC: No topic route info in name server for the topic: nope"),
        ("updateBrokerConfig -c DefaultCluster -k noSuchKey -v 1", 1, "did not take noSuchKey"),
        ("resetOffsetByTime -g g -t TBW102 -s yesterday", 2, "-s: expected now, milliseconds since 1970 or "),
        ("updateTopic -c DefaultCluster -t x -r many", 2, "-r: expected a number, got 'many'"),
    ],
)
def test_an_error_is_one_line(embedded: EmbeddedCluster, words: str, code: int, text: str) -> None:
    done = run("mqadmin", *words.split(), "-n", embedded.name_server)
    assert (done.exit_code, done.stdout) == (code, "")
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_written_reaches_the_broker(embedded: EmbeddedCluster) -> None:
    for line in ("updateTopic -c DefaultCluster -t here -r 2 -w 3 -o true", "updateSubGroup -c DefaultCluster -g g1"):
        assert run("mqadmin", *line.split(), "-n", embedded.name_server).exit_code == 0
    route = run("mqadmin", "topicRoute", "-t", "here", "-n", embedded.name_server).stdout
    with RemotingClient(embedded.name_server) as client:
        # Name servers tell it in routes only with orderMessageEnable=true.
        answer = client.request(RequestCode.GET_KV_CONFIG, {"namespace": "ORDER_TOPIC_CONFIG", "key": "here"})
    assert answer.ext_fields == {"value": "broker-a:3"}
    assert '"readQueueNums":2,\n' in route
    progress = run("mqadmin", "consumerProgress", "-n", embedded.name_server).stdout
    assert progress.splitlines() == [
        f"{'#Group':<64}  #Count  #Version                 #Type  #Model          #TPS     #Diff Total"
    ]


def test_versions_are_named() -> None:
    assert [version_name(number) for number in (-1, 61, 62, 401, 611, 612)] == [
        "-1",
        "V3_1_7",
        "V3_1_8_SNAPSHOT",
        "V4_9_4",
        "V5_9_9",
        "HIGHER_VERSION",
    ]
