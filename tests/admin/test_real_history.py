"""A watcher samples RocketMQ's brokers, which keep no ledger, and what was lost is known after all have left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rmqfast import Admin, ClientConfig, Message, MessageQueue, Producer
from rmqfast.admin import Outcome
from rmqfast.admin.history import HistoryWatcher
from rmqfast.admin.history.stretches import stretches_of
from tests.broker.interop.cluster import SCENARIO, Cluster
from tests.waiting import until

from .members import online, online_members, wants

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

#: Our broker without its ledger, which is certain and would go before samples; others do not know the key.
BROKER_PROPERTIES = (*SCENARIO, "pullLedgerEnable=false")
TOPIC, GROUP = "sampled", "sampled_group"
QUEUES = [MessageQueue(TOPIC, "broker-a", number) for number in range(4)]


def test_what_two_members_with_different_tags_lost(each_cluster: Cluster, tmp_path: Path) -> None:
    name_server, path = each_cluster.name_server, tmp_path / "real.history"

    def shows(members: int, stop: int | None) -> bool:
        stretches = stretches_of(path, GROUP, QUEUES[0])
        newest = stretches[-1] if stretches else None
        # Times in the file are late by as much as the clock of the broker is not known.
        is_settled = newest is not None and newest.first + 2000 < time.time() * 1000
        return newest is not None and is_settled and len(newest.group.members) == members and newest.stop == stop

    with (
        Admin(name_server=name_server, timeout=20) as admin,
        Producer("sampled_producers", name_server=name_server) as producer,
        HistoryWatcher(ClientConfig(name_server=name_server), path, timeout=20) as watcher,
    ):
        admin.create_topic(TOPIC, queues=4)
        with (
            online(name_server, "C1", GROUP, [wants(TOPIC, "TagA", 1)], QUEUES[:2]),
            online(name_server, "C2", GROUP, [wants(TOPIC, "TagB", 2)], QUEUES[2:]),
        ):
            until(lambda: shows(2, None), lambda: watcher.problems, patience=180)
            sent = [producer.send(Message(TOPIC, b"x", "TagB"), queue) for queue in QUEUES * 2]
            for queue in QUEUES:
                admin.offsets.reset(GROUP, queue, 2, force=True)
            until(lambda: shows(2, 2), lambda: watcher.problems, patience=180)
        until(lambda: not online_members(admin, GROUP) and shows(0, 2), lambda: watcher.problems, patience=180)
        messages = [admin.view_message(each.offset_msg_id) for each in sent]
        told = [admin.explain(message, GROUP, history=path) for message in messages]
    outcomes = [each.outcome for each in told]
    assert outcomes == [Outcome.LOST, Outcome.LOST, Outcome.CONSUMED, Outcome.CONSUMED] * 2
    assert all(each.sampled for each in told)
