"""Brokers that answer garbage, and names that hold anything, end no examination and reach no terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rmqfast import Admin
from rmqfast.client.instance import ClientConfig
from rmqfast.doctor import AlarmMonitor, examine_cluster
from rmqfast.message import MessageQueue
from rmqfast.remoting import RemotingServer, Request, RequestCode, Response
from rmqfast.remoting.fastjson import encode
from tests.admin.members import online, registered, wants
from tests.cli.command_line import run

from .examined import GROUP, TOPIC, cluster_of

#: What a broker is asked.
CODES = (
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_BROKER_CONSUME_STATS,
    RequestCode.GET_BROKER_RUNTIME_INFO,
    RequestCode.GET_BROKER_CONFIG,
    RequestCode.GET_CONSUMER_CONNECTION_LIST,
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    RequestCode.GET_TOPIC_STATS_INFO,
    RequestCode.QUERY_CONSUME_TIME_SPAN,
    RequestCode.VIEW_BROKER_STATS_DATA,
    RequestCode.PULL_MESSAGE,
)
#: Tables as a broker tells them, with what must be asked for one by one.
TABLES = {
    RequestCode.GET_ALL_TOPIC_CONFIG: {
        "topicConfigTable": {
            name: {"topicName": name, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
            for name in (TOPIC, f"%RETRY%{GROUP}", f"%DLQ%{GROUP}")
        }
    },
    RequestCode.GET_ALL_CONSUMER_OFFSET: {"offsetTable": {"RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS": {"0": 1}}},
    RequestCode.GET_BROKER_CONSUME_STATS: {
        "consumeStatsList": [
            {
                GROUP: [
                    {
                        "consumeTps": 1.0,
                        "offsetTable": {MessageQueue(topic, "broker-x", 0): {"brokerOffset": 9, "consumerOffset": 1}},
                    }
                    for topic in (TOPIC, f"%RETRY%{GROUP}")
                ]
            }
        ]
    },
}


def tells_tables(garbage: bytes) -> Callable[[Request], Response]:
    """A broker that tells whole tables, and garbage for each single question."""

    def answer(request: Request) -> Response:
        table = TABLES.get(RequestCode(request.code))
        return Response(body=garbage if table is None else encode(table))

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: Response(1, "no"),
        lambda _: Response(body=b"\xff{"),
        lambda _: Response(body=b"[]"),
        tells_tables(b""),
        tells_tables(b"\x00" * 40),
        tells_tables(b"haListenPort=no\nbrokerName=\xff\n"),
    ],
    ids=["refuses", "no JSON", "a list", "nothing", "zeros", "no ports"],
)
def test_a_broker_that_answers_garbage_ends_no_examination(answer: Callable[[Request], Response]) -> None:
    with (
        cluster_of() as cluster,
        RemotingServer(dict.fromkeys(CODES, answer)) as server,
        registered(cluster.name_server, "broker-x", server.listen("127.0.0.1:0"), cluster="DefaultCluster"),
    ):
        diagnosis = examine_cluster(name_server=cluster.name_server, timeout=2)
        with AlarmMonitor(ClientConfig(name_server=cluster.name_server), timeout=2) as monitor:
            problems = monitor.problems
    assert diagnosis.has_problem
    assert any("broker-x" in each for each in diagnosis.unknown)
    assert any("broker-x" in each for each in problems)


def test_names_of_clients_reach_no_terminal() -> None:
    evil = "C1\x1b[2J\nproblem forged: broker-a\u202e"
    queue = MessageQueue(TOPIC, "broker-a", 0)
    with cluster_of() as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(TOPIC, queues=1)
        with (
            online(cluster.name_server, evil, GROUP, [wants(TOPIC, "TagA", 1)], [queue]),
            online(cluster.name_server, "C2", GROUP, [wants(TOPIC, "Tag\x1b]B", 2)]),
        ):
            printed = run("doctor", "-n", cluster.name_server).stdout
            told = run("doctor", "-n", cluster.name_server, "-o", "json").stdout
    assert "subscription-conflict" in printed
    assert not {"\x1b", "\u202e"} & set(printed)
    assert not [line for line in printed.splitlines() if line.startswith("problem forged")]
    assert "\\u001b" in told
