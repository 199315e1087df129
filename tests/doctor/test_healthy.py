"""Nothing is found in a healthy cluster; what could not be examined is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rmqfast import Admin, EmbeddedCluster, Message, Producer, PushConsumer
from rmqfast.client.push import ConsumeConcurrentlyStatus
from rmqfast.doctor import Level, examine_cluster
from rmqfast.errors import ArgumentError, ClientError, ResponseError
from rmqfast.nameserver import NameServer
from rmqfast.nameserver.config import NamesrvConfig
from rmqfast.remoting import Request, RequestCode, ResponseCode
from tests.broker.interop.cluster import Cluster
from tests.cli.command_line import run
from tests.disks import ROOMY
from tests.waiting import until

from .examined import GROUP, TOPIC, cluster_of, examine


def work_in(name_server: str, topic: str = TOPIC) -> None:
    """Sends messages, and lets two members of a group consume them."""
    consumed: list[bytes] = []

    def consume(messages: object, _context: object) -> ConsumeConcurrentlyStatus:
        consumed.extend(message.body for message in messages)  # type: ignore[attr-defined]
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    with Admin(name_server=name_server, timeout=20) as admin, Producer("doctors", name_server=name_server) as producer:
        admin.create_topic(topic, queues=4)
        members = [PushConsumer(GROUP, name_server=name_server, instance_name=name) for name in ("C1", "C2")]
        for member in members:
            member.subscribe(topic)
            member.register_message_listener(consume)
        with members[0], members[1]:
            until(lambda: len(admin.groups.connections(GROUP).client_ids) == 2, patience=120)
            until(lambda: has_owners(admin, topic), patience=120)
            for number in range(20):
                producer.send(Message(topic, str(number).encode()))
            until(lambda: len(consumed) == 20, patience=120)
            diagnosis = examine_cluster(name_server=name_server, timeout=20)
    assert [each for each in diagnosis.findings if each.level is Level.PROBLEM] == []
    assert diagnosis.unknown == ()
    # RocketMQ's defaults are not those of a careful operator.
    assert {each.name for each in diagnosis.findings} <= {"auto-create", "single-copy"}
    assert not diagnosis.has_problem


def has_owners(admin: Admin, topic: str) -> bool:
    """Whether each queue of the topic has an owner."""
    facts = [admin.explain(row.queue, GROUP).queue for row in admin.topics.status(topic)]
    return all(each is not None and each.owner for each in facts)


def test_a_careful_cluster_has_no_finding() -> None:
    with cluster_of(brokers=2, name_servers=2, replicas=1) as cluster:
        until(lambda: len(known(cluster)) == 4)
        work_in(cluster.name_server)
        assert examine(cluster).findings == ()


def known(cluster: EmbeddedCluster) -> list[object]:
    with Admin(name_server=cluster.name_server) as admin:
        return list(admin.clusters.brokers())


def test_default_settings_are_advised_against_and_are_no_problem() -> None:
    with EmbeddedCluster(config=ROOMY) as cluster:
        work_in(cluster.name_server)
        done = run("doctor", "-n", cluster.name_server)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1] == f"cluster at {cluster.name_server}: 2 pieces of advice"
    assert done.stdout.startswith("advice auto-create: broker broker-a\n  autoCreateTopicEnable=true: ")


def test_a_problem_has_exit_code_1_and_facts_for_scripts() -> None:
    with cluster_of() as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(TOPIC, queues=4, read_queues=3)
        done = run("doctor", "-n", cluster.name_server, "-o", "json")
        table, lines = (run("doctor", "-n", cluster.name_server, "-o", form) for form in ("table", "jsonl"))
    assert done.exit_code == table.exit_code == lines.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["has_problem"], told["unknown"]) == (True, [])
    (finding,) = told["findings"]
    assert json.loads(lines.stdout) == finding
    assert finding == {
        "evidence": "at broker-a producers send to 4 queues, and consumers read 3: nobody reads queue 3",
        "level": "problem",
        "name": "queues-never-read",
        "next_step": f"`rmqfast topic create {TOPIC} --queues 4` makes 4 for both",
        "subject": f"topic {TOPIC}",
    }
    assert table.stdout.splitlines() == [
        f"problem queues-never-read: topic {TOPIC}",
        f"  {finding['evidence']}",
        f"  next: {finding['next_step']}",
        f"cluster at {cluster.name_server}: 1 problem",
    ]


def refuse_configuration(request: Request) -> None:
    if request.code == RequestCode.GET_BROKER_CONFIG:
        raise ResponseError(ResponseCode.NO_PERMISSION, "no right to it")


def test_what_a_broker_does_not_tell_is_no_health() -> None:
    with cluster_of(check=refuse_configuration) as cluster:
        diagnosis = examine(cluster)
        done = run("doctor", "-n", cluster.name_server)
    assert diagnosis.has_problem
    # Without a configuration, default limits count, and the disk of this machine may exceed them.
    assert [each for each in diagnosis.findings if each.name != "disk-full"] == []
    (gap,) = diagnosis.unknown
    assert gap.startswith("configuration of broker-a at 127.0.0.1:")
    assert "no right to it" in gap
    *_, last = done.stdout.splitlines()
    assert (done.exit_code, last.startswith(diagnosis.subject), last.endswith("1 gap")) == (1, True, True)
    assert "not examined: configuration of broker-a" in done.stdout


def test_a_cluster_without_brokers_is_no_health(tmp_path: Path) -> None:
    with NameServer(NamesrvConfig(kv_config_path=str(tmp_path / "kv.json"), listen_port=0)) as server:
        diagnosis = examine_cluster(name_server=server.address)
    assert diagnosis.unknown == ("the name server knows no broker: start one, and wait a moment",)
    assert diagnosis.has_problem


def test_no_name_server_is_an_error() -> None:
    with pytest.raises(ClientError, match="name server"):
        examine_cluster(name_server="")
    done = run("doctor", "-n", "127.0.0.1:1")
    assert done.exit_code == 3
    assert done.stderr.startswith("error: ")


def test_store_and_spark_exclude_each_other(tmp_path: Path) -> None:
    done = run("doctor", tmp_path, "--spark")
    assert (done.exit_code, done.stderr) == (2, "error: expected STORE or --spark, got both\n")


def test_names_are_suggested() -> None:
    with pytest.raises(ArgumentError, match="did you mean name_server"):
        examine_cluster(name_servers="127.0.0.1:9876")  # type: ignore[call-arg]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_real_brokers_are_healthy(each_cluster: Cluster) -> None:
    work_in(each_cluster.name_server, "healthy")
