"""A snapshot tells what single requests tell, and goes without what a broker does not tell."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from rmqfast import EmbeddedCluster, Message, Producer
from rmqfast.admin import Admin, Snapshot
from rmqfast.errors import ArgumentError
from rmqfast.message import MessageQueue
from rmqfast.nameserver import NameServer
from rmqfast.nameserver.config import NamesrvConfig
from rmqfast.remoting import RemotingServer, Request, RequestCode, Response
from rmqfast.remoting.fastjson import encode
from tests.broker.interop.cluster import Cluster
from tests.cli.command_line import run
from tests.waiting import until

from .faces import made
from .members import online, registered, wants

TOPIC, GROUP = "photographed", "in_the_picture"
#: Requests of the five tables.
BULK = {21, 28, 43, 201, 317}
#: What their answers consist of.
_MEMBERS = ("table", "topicConfigTable", "subscriptionGroupTable", "offsetTable", "consumeStatsList", "consumerTable")


class Asked:
    """The requests that the brokers of a cluster got. Hides on demand what only our brokers tell at once."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.hides = False

    def __call__(self, request: Request) -> None:
        self.codes.append(request.code)
        if self.hides:
            ext_fields: Any = request.ext_fields
            ext_fields.pop("isDetailed", None)

    @contextmanager
    def as_rocketmq(self) -> Iterator[None]:
        self.hides = True
        yield
        self.hides = False


@pytest.fixture(scope="module")
def asked() -> Asked:
    return Asked()


@pytest.fixture(scope="module")
def cluster(asked: Asked) -> Iterator[EmbeddedCluster]:
    """Two brokers with a topic, and a group that has read half of it."""
    with EmbeddedCluster(brokers=2, check=asked) as running, Admin(name_server=running.name_server) as admin:
        admin.create_topic(TOPIC, queues=2)
        with Producer("photographers", name_server=running.name_server) as producer:
            for number in range(8):
                producer.send(Message(TOPIC, b"x"), MessageQueue(TOPIC, f"broker-{'ab'[number % 2]}", number // 2 % 2))
        admin.create_group(GROUP)
        for row in admin.topics.status(TOPIC):
            admin.offsets.reset(GROUP, row.queue, 1)
        yield running


@pytest.fixture(params=["blocking", "asyncio"])
def admin(request: pytest.FixtureRequest, cluster: EmbeddedCluster) -> Iterator[Admin]:
    with made(request.param, cluster.name_server) as made_admin, made_admin as started:
        yield started


def test_it_tells_what_single_requests_tell(admin: Admin) -> None:
    snapshot = admin.snapshot()
    assert snapshot.problems == ()
    assert [broker.broker_name for broker in snapshot.brokers] == ["broker-a", "broker-b"]
    topics = {each.topic: each for each in snapshot.topics}
    assert sorted(topics) == admin.topics.all()
    assert (topics[TOPIC].brokers, topics[TOPIC].read_queues, topics[TOPIC].perm) == (("broker-a", "broker-b"), 4, 6)
    (group,) = [each for each in snapshot.groups if each.group == GROUP]
    alone = admin.groups.progress(GROUP, TOPIC)
    assert group.progress is not None
    assert [(row.queue, row.broker_offset, row.consumer_offset, row.last_timestamp) for row in group.progress] == [
        (row.queue, row.broker_offset, row.consumer_offset, row.last_timestamp) for row in alone
    ]
    assert (group.progress.diff_total, group.members, group.conflicts) == (4, (), ())
    for broker in snapshot.brokers:
        assert broker.status is not None
        assert broker.status["bootTimestamp"] == admin.brokers.status(broker.broker_name)["bootTimestamp"]
        assert broker.offsets is not None
        assert broker.offsets[GROUP, TOPIC] == {0: 1, 1: 1}
        assert broker.groups is not None
        assert broker.groups[GROUP] == admin.groups.all()[GROUP]


def test_it_tells_since_when_the_first_unread_message_waits(admin: Admin) -> None:
    (group,) = [each for each in admin.snapshot().groups if each.group == GROUP]
    assert group.progress is not None
    for row in group.progress:
        message = admin.messages.by_offset(row.queue, row.consumer_offset)
        assert row.unread_timestamp == message.store_timestamp


def test_it_costs_five_requests_a_broker_and_a_list_of_groups_three(
    cluster: EmbeddedCluster, asked: Asked, admin: Admin
) -> None:
    asked.codes.clear()
    admin.snapshot(members=True)
    assert sorted(asked.codes) == sorted([*BULK, *BULK])
    asked.codes.clear()
    assert run("group", "list", "-n", cluster.name_server).exit_code == 0
    assert sorted(asked.codes) == [21, 21, 201, 201, 317, 317]


def test_only_the_tables_asked_for_are_told(asked: Asked, admin: Admin) -> None:
    asked.codes.clear()
    snapshot = admin.snapshot(tables=["topics"])
    assert asked.codes == [RequestCode.GET_ALL_TOPIC_CONFIG] * 2
    assert all(broker.groups is None and broker.progress is None for broker in snapshot.brokers)
    assert [each.progress for each in snapshot.groups if each.group == GROUP] == []
    with pytest.raises(ArgumentError, match=r"tables: expected some of status, topics, .*, got 'queues'"):
        admin.snapshot(tables=["queues"])


def test_members_who_subscribe_differently_are_a_conflict(cluster: EmbeddedCluster, admin: Admin) -> None:
    group = "disagreeing"
    with (
        online(cluster.name_server, "C1", group, [wants(TOPIC, "TagA", 1)]) as first,
        online(cluster.name_server, "C2", group, [wants(TOPIC, "TagB", 2)]) as second,
    ):
        (told,) = [each for each in admin.snapshot().groups if each.group == group]
    assert told.members is not None
    assert [each.client_id for each in told.members] == [first, second]
    assert (told.consume_type, told.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert told.conflicts is not None
    assert [each.expressions for each in told.conflicts] == [{first: "TagA", second: "TagB"}]


def test_brokers_of_rocketmq_are_asked_one_by_one(cluster: EmbeddedCluster, asked: Asked, admin: Admin) -> None:
    group, alone = "told_singly", "told_alone"
    with (
        online(cluster.name_server, "C1", group, [wants(TOPIC, "TagA", 1)]) as first,
        online(cluster.name_server, "C2", group, [wants(TOPIC, "TagB", 2)]) as second,
        online(cluster.name_server, "C3", alone, [wants(TOPIC, "TagA", 1)]),
        asked.as_rocketmq(),
    ):
        groups = {each.group: each for each in admin.snapshot().groups}
        assert (groups[group].members, groups[group].conflicts) == (None, None)
        groups = {each.group: each for each in admin.snapshot(members=True, unread=True).groups}
        # Only members of groups with several are asked for what they want.
        assert asked.codes.count(RequestCode.GET_CONSUMER_RUNNING_INFO) == 2
    told = groups[group]
    assert told.members is not None
    assert [each.client_id for each in told.members] == [first, second]
    assert told.conflicts is not None
    assert [each.expressions for each in told.conflicts] == [{first: "TagA", second: "TagB"}]
    assert groups[alone].conflicts == ()
    # The broker tells the age, and not since when: it is as old as the answer took.
    progress = groups[GROUP].progress
    assert progress is not None
    ours = {each.group: each for each in admin.snapshot().groups}[GROUP].progress
    assert ours is not None
    assert progress.unread_timestamp == pytest.approx(ours.unread_timestamp, abs=2000)
    asked.codes.clear()


def test_a_member_that_does_not_answer_leaves_conflicts_unknown(
    cluster: EmbeddedCluster, asked: Asked, admin: Admin
) -> None:
    group = "half_told"
    with (
        online(cluster.name_server, "C1", group, [wants(TOPIC, "TagA", 1)], running_info=lambda: 1 / 0),
        online(cluster.name_server, "C2", group, [wants(TOPIC, "TagB", 2)]),
        asked.as_rocketmq(),
    ):
        snapshot = admin.snapshot(members=True)
        (told,) = [each for each in snapshot.groups if each.group == group]
    assert told.members is not None
    assert (len(told.members), told.conflicts) == (2, None)
    # Nobody must take it for a group without conflicts.
    assert any(f"conflicts of group {group}: " in problem for problem in snapshot.problems)


def snapshot_beside(answers: Callable[[Request], Response] | None, name: str) -> Snapshot:
    """A snapshot of a cluster in which one of two brokers gives these answers, or none."""
    with ExitStack() as stack:
        cluster = stack.enter_context(EmbeddedCluster())
        if answers is None:
            silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            address = f"127.0.0.1:{silent.getsockname()[1]}"
        else:
            address = stack.enter_context(RemotingServer(dict.fromkeys(BULK, answers))).listen("127.0.0.1:0")
        stack.enter_context(registered(cluster.name_server, name, address))
        return stack.enter_context(Admin(name_server=cluster.name_server, timeout=0.3)).snapshot()


@pytest.mark.parametrize(
    "answers",
    [
        None,
        lambda _: Response(1, "no"),
        lambda _: Response(body=b"\xff{"),
        lambda _: Response(body=b"[]"),
        lambda _: Response(body=encode(dict.fromkeys(_MEMBERS, 7))),
        lambda _: Response(body=encode({name: {"x@y": [1]} for name in _MEMBERS})),
    ],
    ids=["silent", "refuses", "no JSON", "no object", "numbers", "lists"],
)
def test_a_broker_that_tells_nothing_of_use_hides_no_other(answers: Callable[[Request], Response] | None) -> None:
    snapshot = snapshot_beside(answers, "broker-x")
    good, bad = snapshot.brokers
    assert (good.broker_name, bad.broker_name) == ("broker-a", "broker-x")
    assert good.status is not None
    assert bad.problems
    assert bad.problems == snapshot.problems
    assert "".join(bad.problems).startswith("broker-x at 127.0.0.1:")
    assert (bad.status, bad.topics, bad.groups, bad.offsets, bad.progress) == (None,) * 5


def test_a_cluster_without_brokers_is_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = str(tmp_path_factory.mktemp("kv") / "kvConfig.json")
    with (
        NameServer(NamesrvConfig(kv_config_path=path, listen_port=0)) as server,
        Admin(name_server=server.address) as admin,
    ):
        assert admin.snapshot().problems == ("the name server knows no broker: start one, and wait a moment",)
        assert run("topic", "list", "-n", server.address).stderr.strip() == admin.snapshot().problems[0]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_real_brokers_tell_the_same_and_members_one_by_one(each_cluster: Cluster) -> None:
    with Admin(name_server=each_cluster.name_server, timeout=20) as admin:
        admin.create_topic(TOPIC, queues=2)
        with online(each_cluster.name_server, "C1", GROUP, [wants(TOPIC, "*")]) as member:
            for queue_id in range(2):
                admin.offsets.reset(GROUP, MessageQueue(TOPIC, "broker-a", queue_id), 0, force=True)
            until(lambda: GROUP in [each.group for each in admin.snapshot().groups], patience=60)
            # A broker of 4.9.4 fails with its status in its first seconds, as it has no samples yet.
            until(lambda: not admin.snapshot().problems, patience=60)
            snapshot = admin.snapshot(members=True)
            alone = admin.groups.progress(GROUP)
    assert snapshot.problems == ()
    (told,) = [each for each in snapshot.groups if each.group == GROUP]
    assert told.members is not None
    assert [each.client_id for each in told.members] == [member]
    assert (told.consume_type, told.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert told.conflicts == ()
    assert told.progress is not None
    assert {row.queue: row.consumer_offset for row in told.progress} == {
        row.queue: row.consumer_offset for row in alone
    }
