"""Each fault of brokers, name servers and topics is found, with its evidence."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rmqfast import Admin, LocalTransactionState, Message, Producer, TransactionProducer
from rmqfast.admin import BrokerRow, Snapshot
from rmqfast.client.instance import ClientConfig
from rmqfast.doctor import Finding, examine_cluster
from rmqfast.doctor.broker_checks import find_clocks_apart
from rmqfast.doctor.examination import Examination
from rmqfast.remoting import RemotingClient, RequestCode
from tests.admin.members import registered
from tests.exporter.conftest import hide_details
from tests.proxy import Proxy
from tests.waiting import until

from .examined import ADVICE, TOPIC, OtherStatus, cluster_of, examine, only, reached_through


def test_a_broker_that_does_not_answer_and_its_private_address() -> None:
    with cluster_of() as cluster, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{closed.getsockname()[1]}"
        with registered(cluster.name_server, "in-a-container", "172.17.0.2:10911", cluster="DefaultCluster"):
            config = ClientConfig(
                name_server=cluster.name_server,
                translate_address=lambda address: gone if address.startswith("172.") else address,
            )
            finding = only(examine_cluster(config=config))
    assert (finding.name, finding.subject) == ("broker-unreachable", "broker in-a-container")
    assert finding.evidence.startswith(
        "it registered the private address 172.17.0.2:10911, and does not answer there: "
    )
    assert "brokerIP1" in finding.next_step


def test_name_servers_that_know_different_brokers() -> None:
    with cluster_of(name_servers=2) as cluster, socket.socket() as closed:
        first, second = cluster.name_server.split(";")
        closed.bind(("127.0.0.1", 0))
        with registered(first, "b", f"127.0.0.1:{closed.getsockname()[1]}"):
            findings = {each.name: each for each in examine(cluster).findings}
    assert findings["name-servers-differ"].subject == f"name server {second}"
    assert findings["name-servers-differ"].evidence == "it lacks broker b, which others have"
    assert findings["broker-unreachable"].subject == "broker b"


def test_a_name_server_that_is_gone() -> None:
    with cluster_of() as cluster, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{closed.getsockname()[1]}"
        finding = only(examine_cluster(name_server=[cluster.name_server, gone]))
    assert (finding.name, finding.subject) == ("name-servers-differ", f"name server {gone}")


def test_two_brokers_of_one_name_at_different_name_servers() -> None:
    with cluster_of(brokers=2) as cluster, cluster_of() as other:
        broker_b = cluster.brokers[1].address
        with registered(other.name_server, "broker-b", broker_b, cluster="DefaultCluster"):
            both = f"{cluster.name_server};{other.name_server}"
            findings = [each for each in examine_cluster(name_server=both).findings if each.name == "duplicate-broker"]
    (finding,) = findings
    assert finding.subject == "broker broker-a, id 0"
    assert finding.evidence.startswith("it is registered at 127.0.0.1:")


def test_two_brokers_of_one_name_that_take_turns_are_seen_while_watching() -> None:
    with cluster_of() as cluster, cluster_of() as other:
        address = other.brokers[0].address

        def watch_while_they_take_turns() -> list[Finding]:
            with ThreadPoolExecutor(1) as threads:
                diagnosis = threads.submit(examine, cluster, watch=1.0)
                while not diagnosis.done():
                    with registered(cluster.name_server, "broker-a", address, cluster="DefaultCluster"):
                        cluster.brokers[0].register()
                return [each for each in diagnosis.result().findings if each.name == "duplicate-broker"]

        until(watch_while_they_take_turns)


def test_a_broker_name_in_two_clusters() -> None:
    with (
        cluster_of() as cluster,
        registered(cluster.name_server, "broker-a", cluster.brokers[0].address, cluster="Other"),
    ):
        finding = only(examine(cluster))
    assert (finding.name, finding.subject) == ("duplicate-broker", "broker broker-a")
    assert finding.evidence == "it is in the clusters DefaultCluster, Other"


def test_an_address_behind_which_another_broker_is() -> None:
    with (
        cluster_of() as cluster,
        registered(cluster.name_server, "broker-z", cluster.brokers[0].address, cluster="DefaultCluster"),
    ):
        finding = only(examine(cluster))
    assert (finding.name, finding.subject) == ("duplicate-broker", "broker broker-z")
    assert "calls itself broker-a, id 0" in finding.evidence


def test_a_disk_over_its_limit() -> None:
    with cluster_of({"diskMaxUsedSpaceRatio": "1"}) as cluster:
        finding = only(examine(cluster))
    assert (finding.name, finding.subject) == ("disk-full", "broker broker-a")
    assert re.match(r"the disk of its commit log is \d+% full: ", finding.evidence)


def test_a_clock_of_a_producer_that_is_ahead() -> None:
    with (
        cluster_of() as cluster,
        Admin(name_server=cluster.name_server) as admin,
        RemotingClient(cluster.brokers[0].address) as client,
    ):
        admin.create_topic(TOPIC, queues=1)
        fields = {
            "bornTimestamp": "4000000000000",
            "defaultTopic": "TBW102",
            "defaultTopicQueueNums": "4",
            "flag": "0",
            "producerGroup": "p",
            "properties": "",
            "queueId": "0",
            "reconsumeTimes": "0",
            "sysFlag": "0",
            "topic": TOPIC,
            "unitMode": "false",
        }
        assert client.request(RequestCode.SEND_MESSAGE, fields, b"x").code == 0
        admin.create_group("readers")
        (row,) = admin.topics.status(TOPIC)
        host = admin.messages.by_offset(row.queue, 0).born_host
        admin.offsets.reset("readers", row.queue, 1, force=True)
        finding = only(examine(cluster))
    assert (finding.name, finding.subject) == ("clocks-apart", f"producer at {host}")
    assert f"a message of {TOPIC} was born " in finding.evidence


def set_back(seconds: int) -> Callable[[bytes], bytes]:
    """Makes of a status that of a broker whose clock is so many seconds behind."""

    def change(body: bytes) -> bytes:
        status = json.loads(body)
        status["table"]["bootTimestamp"] = str(int(status["table"]["bootTimestamp"]) - seconds * 1000)
        return json.dumps(status).encode()

    return change


def test_a_clock_of_a_broker_that_is_behind() -> None:
    with cluster_of() as cluster, reached_through(cluster, set_back(3600)) as config:
        (finding,) = [each for each in examine_cluster(config=config).findings if each.name == "clocks-apart"]
    assert finding.subject == "broker broker-a"
    assert re.fullmatch(r"its clock is (59 min 5\d s|1 h) behind this machine's", finding.evidence)


def test_a_synchronous_master_without_a_slave() -> None:
    with cluster_of({"brokerRole": "SYNC_MASTER"}) as cluster:
        finding = only(examine(cluster))
    assert (finding.name, finding.subject) == ("single-copy", "broker broker-a")
    assert "SLAVE_NOT_AVAILABLE" in finding.evidence


def test_a_slave_far_behind() -> None:
    def forget_the_end(body: bytes) -> bytes:
        status = json.loads(body)
        status["table"]["commitLogMaxOffset"] = "0"
        return json.dumps(status).encode()

    with (
        cluster_of({"haSlaveFallbehindMax": "10"}, replicas=1) as cluster,
        Admin(name_server=cluster.name_server) as admin,
        Producer("doctors", name_server=cluster.name_server) as producer,
    ):
        admin.create_topic(TOPIC, queues=1)
        producer.send(Message(TOPIC, b"x"))
        slave = until(lambda: next((row.address for row in admin.clusters.brokers() if not row.is_master), None))
        assert slave is not None
        with Proxy(slave, lambda _: OtherStatus(forget_the_end)) as proxy:
            config = ClientConfig(
                name_server=cluster.name_server,
                translate_address=lambda address: proxy.address if address == slave else address,
            )
            (finding,) = [each for each in examine_cluster(config=config).findings if each.name == "single-copy"]
    assert finding.subject == "slave 1 of broker-a"
    assert finding.evidence.endswith("of the log behind its master")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            (b'"sendThreadPoolQueueHeadWaitTimeMills":"0"', b'"sendThreadPoolQueueHeadWaitTimeMills":"321"'),
            "waited for 321 ms",
        ),
        ((b'"pageCacheLockTimeMills":"0"', b'"pageCacheLockTimeMills":"1500"'), "written for 1500 ms"),
        ((b"[2~3s]:0", b"[2~3s]:7"), "7 messages took a second or longer to store"),
    ],
)
def test_a_broker_that_is_busy(change: tuple[bytes, bytes], text: str) -> None:
    def changed(body: bytes) -> bytes:
        assert change[0] in body
        return body.replace(*change)

    with cluster_of() as cluster, reached_through(cluster, changed) as config:
        (finding,) = [each for each in examine_cluster(config=config).findings if each.name == "broker-busy"]
    assert text in finding.evidence


def test_the_second_port_of_clients_is_closed() -> None:
    """Behind the port through which the broker is reached, there is no second one."""
    with cluster_of() as cluster, reached_through(cluster) as config:
        finding = only(examine_cluster(config=config))
    assert (finding.name, finding.level) == ("vip-port-closed", ADVICE)


def test_the_port_of_slaves_is_closed() -> None:
    """The broker is reached at another address of this machine, where it has no port for slaves."""
    with (
        cluster_of(replicas=1) as cluster,
        Admin(name_server=cluster.name_server) as admin,
        Proxy(cluster.brokers[0].address, listen="127.0.0.2:0") as proxy,
    ):
        until(lambda: len(admin.clusters.brokers()) == 2)
        config = ClientConfig(name_server=cluster.name_server, translate_address=lambda _: proxy.address)
        (finding,) = [each for each in examine_cluster(config=config).findings if each.name == "ha-port-closed"]
    assert finding.subject == "broker broker-a"
    assert re.match(r"127\.0\.0\.2:\d+ accepts no connection, so that slaves copy nothing: ", finding.evidence)


def test_automatic_topics_and_the_topic_that_they_need() -> None:
    with cluster_of({"autoCreateTopicEnable": "true"}) as cluster:
        finding = only(examine(cluster))
        assert (finding.name, finding.level) == ("auto-create", ADVICE)
    with cluster_of() as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.brokers.update_config("broker-a", {"autoCreateTopicEnable": True})
        finding = only(examine(cluster))
    assert finding.name == "auto-create"
    assert finding.evidence == "autoCreateTopicEnable=true, but it lacks TBW102: sends to new topics fail"


@pytest.mark.parametrize(
    ("version", "level", "text"),
    [
        ("V4_9_4", "advice", "takes commands without an account"),
        ("V5_1_0", "problem", "and 5.1.0 has CVE-2023-33246"),
    ],
)
def test_a_broker_that_is_open_to_all(version: str, level: str, text: str) -> None:
    """Ours runs no program for anybody, whichever version of RocketMQ it follows."""
    with (
        cluster_of(check=hide_details if level == "problem" else None) as cluster,
        reached_through(cluster, lambda body: body.replace(b"V4_9_4", version.encode())) as reached,
        registered(cluster.name_server, "broker-a", "10.1.2.3:10911", cluster="DefaultCluster"),
    ):
        findings = [each for each in examine_cluster(config=reached).findings if each.name == "open-to-all"]
    (finding,) = findings
    assert (finding.level.value, finding.subject) == (level, "broker broker-a")
    assert text in finding.evidence


class Undecided:
    """A listener that never decides."""

    def execute_local_transaction(self, _message: object, _argument: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN

    def check_local_transaction(self, _message: object) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN


def test_transactions_that_nobody_ends() -> None:
    settings = {"transactionTimeOut": "100", "transactionCheckInterval": "100"}
    with cluster_of(settings) as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(TOPIC, queues=1)
        with TransactionProducer("undecided", Undecided(), name_server=cluster.name_server) as producer:
            producer.send_in_transaction(Message(TOPIC, b"x"))
        finding = until(lambda: next((f for f in examine(cluster).findings if f.name == "transactions-open"), None))
    assert finding is not None
    assert finding.subject == "producer group undecided"
    assert finding.evidence.startswith("1 messages at broker-a wait to be committed, the first one since 20")


def test_queues_that_nobody_may_read() -> None:
    with cluster_of() as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(TOPIC, queues=4, read_queues=2)
        finding = only(examine(cluster))
    assert (finding.name, finding.subject) == ("queues-never-read", f"topic {TOPIC}")
    assert finding.evidence.endswith("nobody reads queue 2 to 3")


def test_a_topic_that_a_broker_lacks() -> None:
    with cluster_of(brokers=2) as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(TOPIC, queues=1, broker_names=["broker-a"])
        finding = only(examine(cluster))
    assert (finding.name, finding.level) == ("topic-on-some-brokers", ADVICE)
    assert finding.evidence == "broker-a has it, and broker-b does not"


@pytest.mark.parametrize(
    ("clock", "text"), [(-2, None), (-6, "6 s behind"), (0, None), (9, None), (13, None), (16, "4 s ahead of")]
)
def test_an_answer_that_took_ten_seconds_makes_no_clock_wrong(clock: int, text: str | None) -> None:
    """A status has whole seconds and may be of any moment until its answer."""
    began, row = 1_790_000_000_000, BrokerRow("DefaultCluster", "broker-a", 0, "10.0.0.1:10911")
    # `clock_of` adds two seconds to what the status tells.
    status = {
        "bootTimestamp": str(began - 60_000 + clock * 1000),
        "runtime": "[ 0 days, 0 hours, 0 minutes, 58 seconds ]",
    }
    examination = Examination(
        snapshot=Snapshot(taken_at=began, brokers=()),
        statuses={row: status},
        asked_at=began,
        answered_at=began + 10_000,
    )
    told = [finding.evidence for finding in find_clocks_apart(examination)]
    assert told == ([] if text is None else [f"its clock is {text} this machine's"])
