"""Faults are found on RocketMQ's brokers, too, which tell less at once than ours."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from rmqfast import Admin, ClientConfig, Message, MessageQueue, Producer, TransactionProducer
from rmqfast.doctor import AlarmChange, AlarmMonitor, Finding, examine_cluster
from tests.admin.members import online, wants
from tests.broker.interop.cluster import Cluster
from tests.waiting import until

from .test_broker_findings import Undecided

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

TOPIC, NARROW, OFFLINE, MIXED = "sick", "sick_narrow", "sick_offline", "sick_mixed"
QUEUES = [MessageQueue(TOPIC, "broker-a", number) for number in range(2)]
WANTED = {"subscription-conflict", "queues-never-read", "group-offline", "dead-letters", "transactions-open"}


def test_faults_are_found_and_told_as_alarms(each_cluster: Cluster) -> None:
    name_server = each_cluster.name_server
    changes: list[AlarmChange] = []
    with ExitStack() as stack:
        admin = stack.enter_context(Admin(name_server=name_server, timeout=20))
        producer = stack.enter_context(Producer("doctors", name_server=name_server))
        admin.create_topic(TOPIC, queues=2)
        admin.create_topic(NARROW, queues=4, read_queues=1)
        admin.create_group(OFFLINE)
        for queue in QUEUES:
            producer.send(Message(TOPIC, b"x"), queue)
        # The group's retry topic, by which its brokers are found, is made by a member.
        with online(name_server, "C0", OFFLINE, [wants(TOPIC, "*")]):
            pass
        for queue in QUEUES:
            admin.offsets.reset(OFFLINE, queue, 0, force=True)
        admin.create_topic(f"%DLQ%{OFFLINE}", queues=1)
        producer.send(Message(f"%DLQ%{OFFLINE}", b"dead"))
        with TransactionProducer("sick_bank", Undecided(), name_server=name_server) as bank:
            bank.send_in_transaction(Message(TOPIC, b"half"))
        stack.enter_context(online(name_server, "C1", MIXED, [wants(TOPIC, "TagA", 1)], QUEUES[:1]))
        stack.enter_context(online(name_server, "C2", MIXED, [wants(TOPIC, "TagB", 2)], QUEUES[1:]))

        def find_all() -> dict[str, Finding] | None:
            findings = {each.name: each for each in examine_cluster(name_server=name_server, timeout=20).findings}
            return findings if findings.keys() >= WANTED else None

        found = until(find_all, patience=180)
        config = ClientConfig(name_server=name_server)
        stack.enter_context(AlarmMonitor(config, interval=1, on_change=changes.append, timeout=20))
        told = {each.alarm.finding.name: each for each in changes}
    assert found is not None
    conflict = found["subscription-conflict"].evidence
    assert conflict == (
        f"in {TOPIC}: 10.0.0.1@C1 wants TagA, 10.0.0.1@C2 wants TagB; brokers filter by TagB; "
        f"{TOPIC} broker-a:0 loses messages"
    )
    assert found["group-offline"].evidence.startswith(f"no member is online, and 2 messages of {TOPIC} are unread, the")
    assert found["queues-never-read"].subject == f"topic {NARROW}"
    assert found["dead-letters"].evidence.startswith("1 at broker-a, the last one of 20")
    assert found["transactions-open"].subject == "producer group sick_bank"
    assert told.keys() >= {"subscription-conflict", "group-offline", "dead-letters"}
