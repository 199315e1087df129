"""Each fault of groups is found, with its evidence."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rmqfast import Admin, Message, MessageQueue, Producer, PushConsumer
from rmqfast.client.consumer.strategies import AllocateMessageQueueAveragely, AllocateMessageQueueAveragelyByCircle
from rmqfast.client.push import ConsumeConcurrentlyStatus, PushOptions
from rmqfast.doctor import Finding
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import encode
from rmqfast.remoting.protocol.subscription_data import SubscriptionData
from tests.admin.members import online, wants
from tests.waiting import until

from .examined import ADVICE, GROUP, TOPIC, cluster_of, examine, old_backlog, only

#: The seconds of an old backlog: older than what counts as late, or as stuck.
OLD = 600.0
QUEUES = [MessageQueue(TOPIC, "broker-a", number) for number in range(2)]


def found(cluster: Any, name: str) -> Finding:
    (finding,) = [each for each in examine(cluster).findings if each.name == name]
    return finding


def test_members_that_want_different_tags_are_named_with_the_queues_that_lose() -> None:
    with cluster_of() as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(TOPIC, queues=2)
        with (
            online(cluster.name_server, "C1", GROUP, [wants(TOPIC, "TagA", 1)], QUEUES[:1]),
            online(cluster.name_server, "C2", GROUP, [wants(TOPIC, "TagB", 2)], QUEUES[1:]),
        ):
            finding = only(examine(cluster))
    assert (finding.name, finding.subject) == ("subscription-conflict", f"group {GROUP}")
    assert finding.evidence == (
        f"in {TOPIC}: 10.0.0.1@C1 wants TagA, 10.0.0.1@C2 wants TagB; brokers filter by TagB; "
        f"{TOPIC} broker-a:0 loses messages"
    )


def test_a_queue_that_nobody_reads_loses_messages_too() -> None:
    """C1 wants another topic only, and gets a queue of this one."""
    with cluster_of() as cluster, Admin(name_server=cluster.name_server) as admin:
        for topic in (TOPIC, "another"):
            admin.create_topic(topic, queues=2)
        with (
            online(cluster.name_server, "C1", GROUP, [wants("another", "*", 1)]),
            online(cluster.name_server, "C2", GROUP, [wants(TOPIC, "*", 2)], QUEUES[1:]),
        ):
            conflicts = [each for each in examine(cluster).findings if each.name == "subscription-conflict"]
    assert [f"in {TOPIC}: " in each.evidence for each in conflicts].count(True) == 1
    (here,) = [each.evidence for each in conflicts if f"in {TOPIC}: " in each.evidence]
    assert here.endswith(f"{TOPIC} broker-a:0 loses messages")


def test_two_processes_with_one_client_id_are_told_with_their_addresses() -> None:
    body = encode(
        {
            "clientID": "10.0.0.1@same",
            "consumerDataSet": [
                {
                    "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                    "consumeType": "CONSUME_PASSIVELY",
                    "groupName": GROUP,
                    "messageModel": "CLUSTERING",
                    "subscriptionDataSet": [wants(TOPIC, "*").to_json()],
                    "unitMode": False,
                }
            ],
            "producerDataSet": [],
        }
    )
    with cluster_of() as cluster, Admin(name_server=cluster.name_server) as admin, ExitStack() as stack:
        admin.create_topic(TOPIC, queues=2)
        for _ in range(2):
            client = stack.enter_context(RemotingClient(cluster.brokers[0].address))
            assert client.request(RequestCode.HEART_BEAT, {}, body).code == 0
        finding = found(cluster, "duplicate-client-id")
    assert finding.evidence.startswith("10.0.0.1@same is connected from 127.0.0.1:")
    assert finding.evidence.count("127.0.0.1:") == 2


@pytest.mark.parametrize(
    ("age", "text"), [(3000, "so that it may be deleted in 9 min"), (9000, "so that it may be deleted at any time")]
)
def test_a_backlog_that_expires_is_told_with_the_time_left(tmp_path: Path, age: float, text: str) -> None:
    with (
        old_backlog(tmp_path, age, {"fileReservedTime": "1"}) as cluster,
        online(cluster.name_server, "C1", GROUP, [wants(TOPIC, "*")], QUEUES),
    ):
        finding = only(examine(cluster))
    assert (finding.name, finding.subject) == ("backlog-expires", f"group {GROUP}")
    assert finding.evidence.startswith(f"2 messages of {TOPIC} at broker-a are unread, the oldest of 20")
    assert text in finding.evidence


def test_sql_that_a_broker_refuses() -> None:
    sql = SubscriptionData(topic=TOPIC, sub_string="a > 3", sub_version=1, expression_type="SQL92")
    with cluster_of({"enablePropertyFilter": "false"}) as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(TOPIC, queues=2)
        with online(cluster.name_server, "C1", GROUP, [sql], QUEUES):
            finding = only(examine(cluster))
    assert (finding.name, finding.subject) == ("sql-refused", f"group {GROUP}")
    assert finding.next_step == "`rmqfast cluster set-config broker-a enablePropertyFilter=true --yes`"


def test_a_group_offline_with_a_backlog(tmp_path: Path) -> None:
    with old_backlog(tmp_path, OLD) as cluster:
        finding = only(examine(cluster))
    assert (finding.name, finding.subject) == ("group-offline", f"group {GROUP}")
    assert finding.evidence.startswith(f"no member is online, and 2 messages of {TOPIC} are unread, the oldest of 20")


def test_a_queue_whose_owner_consumes_nothing(tmp_path: Path) -> None:
    def said() -> dict[str, Any]:
        still = {
            "cachedMsgCount": 1,
            "commitOffset": 0,
            "droped": False,
            "lastConsumeTimestamp": int((time.time() - OLD) * 1000),
            "lastPullTimestamp": int(time.time() * 1000),
        }
        return {
            "mqTable": {QUEUES[0]: still, QUEUES[1]: still | {"cachedMsgCount": 0}},
            "properties": {"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY"},
            "statusTable": {},
            "subscriptionSet": [wants(TOPIC, "*").to_json()],
        }

    with (
        old_backlog(tmp_path, OLD) as cluster,
        online(cluster.name_server, "C1", GROUP, [wants(TOPIC, "*")], running_info=said),
    ):
        finding = only(examine(cluster))
    assert (finding.name, finding.next_step) == (
        "queue-stuck",
        f"`rmqfast group stacks {GROUP}` shows where its listener waits",
    )
    assert finding.evidence.startswith(f"10.0.0.1@C1 has 1 messages of {TOPIC} broker-a:0 in memory, and has consumed")


def test_members_without_a_queue_are_named() -> None:
    with cluster_of() as cluster, Admin(name_server=cluster.name_server) as admin, ExitStack() as stack:
        admin.create_topic(TOPIC, queues=2)
        for number, queues in enumerate((QUEUES[:1], QUEUES[1:], [])):
            stack.enter_context(online(cluster.name_server, f"C{number}", GROUP, [wants(TOPIC, "*")], queues))
        finding = only(examine(cluster))
    assert (finding.name, finding.level) == ("idle-members", ADVICE)
    assert finding.evidence == f"3 members share 2 queues of {TOPIC}: 10.0.0.1@C2 has none"


def test_a_queue_that_no_member_has(tmp_path: Path) -> None:
    with (
        old_backlog(tmp_path, OLD) as cluster,
        online(cluster.name_server, "C1", GROUP, [wants(TOPIC, "*")], QUEUES[:1]),
    ):
        finding = only(examine(cluster))
    assert finding.name == "queue-without-owner"
    assert finding.evidence == f"{TOPIC} broker-a:1 has unread messages, and none of the 1 members has it"


def test_members_that_allocate_in_different_ways() -> None:
    with cluster_of() as cluster, Admin(name_server=cluster.name_server) as admin, ExitStack() as stack:
        admin.create_topic(TOPIC, queues=2)
        for strategy in (AllocateMessageQueueAveragely(), AllocateMessageQueueAveragelyByCircle()):
            consumer = PushConsumer(
                GROUP,
                name_server=cluster.name_server,
                instance_name=strategy.name,
                options=PushOptions(allocate_strategy=strategy),
            )
            consumer.subscribe(TOPIC)
            consumer.register_message_listener(lambda *_: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
            stack.enter_context(consumer)
        until(lambda: len(admin.groups.connections(GROUP).client_ids) == 2)
        finding = found(cluster, "mixed-members")
    assert finding.evidence.startswith("allocation strategies differ: ")
    for name in ("@AVG has AllocateMessageQueueAveragely", "@AVG_BY_CIRCLE has AllocateMessageQueueAveragelyByCircle"):
        assert name in finding.evidence


def test_dead_letters_and_a_storm_of_retries() -> None:
    with (
        cluster_of() as cluster,
        Admin(name_server=cluster.name_server) as admin,
        Producer("doctors", name_server=cluster.name_server) as producer,
    ):
        admin.create_topic(TOPIC, queues=2)
        consumer = PushConsumer(
            GROUP,
            name_server=cluster.name_server,
            options=PushOptions(max_reconsume_times=0, consume_from_where="CONSUME_FROM_FIRST_OFFSET"),
        )
        consumer.subscribe(TOPIC)
        consumer.register_message_listener(lambda *_: ConsumeConcurrentlyStatus.RECONSUME_LATER)
        for number in range(20):
            producer.send(Message(TOPIC, b"x"), QUEUES[number % 2])
        with consumer:
            until(lambda: len(admin.dead_letters.of_group(GROUP)) == 20)
            until(lambda: "dead-letters" in {each.name for each in examine(cluster).findings})
            finding = found(cluster, "dead-letters")
    assert finding.evidence.startswith("20 at broker-a, the last one of 20")
    assert finding.next_step.startswith(f"`rmqfast group dead-letters {GROUP}` lists them")


@pytest.mark.slow
def test_a_group_that_sends_most_messages_back() -> None:
    levels = " ".join(["1s"] * 18)
    with (
        cluster_of({"messageDelayLevel": levels}) as cluster,
        Admin(name_server=cluster.name_server) as admin,
        Producer("doctors", name_server=cluster.name_server) as producer,
    ):
        admin.create_topic(TOPIC, queues=2)
        consumer = PushConsumer(GROUP, name_server=cluster.name_server, options=PushOptions(max_reconsume_times=2))
        consumer.subscribe(TOPIC)
        consumer.register_message_listener(lambda *_: ConsumeConcurrentlyStatus.RECONSUME_LATER)
        for number in range(20):
            producer.send(Message(TOPIC, b"x"), QUEUES[number % 2])
        for queue in QUEUES:
            admin.offsets.reset(GROUP, queue, 0, force=True)
        with consumer:
            # A broker takes a sample of its statistics every ten seconds.
            finding = until(lambda: next((f for f in examine(cluster).findings if f.name == "retry-storm"), None))
    assert finding is not None
    # A message is sent back by its first topic, also as a retry.
    assert re.fullmatch(
        rf"of {TOPIC} at broker-a it got 20 messages in a minute, and sent [2-6]0 back", finding.evidence
    )
