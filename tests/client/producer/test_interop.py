"""What is sent here, as the official Java client gets it from real brokers, and from ours."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast import Message
from rmqfast.admin import Admin
from rmqfast.client.producer import LocalTransactionState, Producer, TransactionProducer
from tests.broker.interop.cluster import Cluster
from tests.interop.rocketmq import java
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.timeout(500)]

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState
ROOT = Path(__file__).parents[3]


def consumed(each_cluster: Cluster, topic: str) -> list[dict[str, Any]]:
    """The messages of a topic, as the pull consumer of 4.9.4 gets them."""
    words = ["--mode", "pull", "--namesrv", each_cluster.name_server, "--topic", topic, "--group", "g", "--full-body"]
    rows = [json.loads(line) for line in java("4.9.4", "Consume", *words).splitlines() if line.startswith("{")]
    return sorted(rows, key=lambda row: (row["queueId"], row["queueOffset"]))


def stored(each_cluster: Cluster, topic: str) -> int:
    """How many messages of a topic its brokers have."""
    with Admin(name_server=each_cluster.name_server, timeout=20) as admin:
        return sum(row.max_offset - row.min_offset for row in admin.topics.status(topic))


def body_of(row: dict[str, Any]) -> bytes:
    return base64.b64decode(row["body"])


def test_java_gets_what_was_sent_with_all_its_properties(each_cluster: Cluster) -> None:
    topic = "everything"
    compressed = b"compress me, " * 4000
    given = [
        Message(topic, b"plain"),
        Message(topic, "größer".encode(), "TagÄ", ["k1", "k2"], {"own": "wért", "n": "1"}, flag=-5),
        Message(topic, compressed, "large", "k3"),
        Message(topic, b"unwaited", wait_store=False),
        Message(topic, os.urandom(300_000), "random"),
        Message(topic, b"delayed", "late", delay_level=1),
    ]
    with Producer("interop", name_server=each_cluster.name_server) as producer:
        results = [producer.send(message) for message in given]
        futures = [producer.send_async(Message(topic, b"async %d" % n, keys=f"a{n}")) for n in range(50)]
        results += [future.result(PATIENCE) for future in futures]
        batch = [Message(topic, b"batch %d" % n, f"t{n % 3}", f"b{n}", {"n": str(n)}) for n in range(64)]
        together = producer.send_batch(batch)
        ordered = [producer.send_ordered(Message(topic, b"ordered"), "key").queue for _ in range(3)]
        assert len(set(ordered)) == 1
        producer.send_oneway(Message(topic, b"oneway"))
        count = len(given) + 50 + 64 + 3 + 1
        until(lambda: stored(each_cluster, topic) == count)
    rows = consumed(each_cluster, topic)
    assert len(rows) == count
    by_id = {row["msgId"]: row for row in rows}
    assert len(by_id) == len(rows)
    for message, result in zip(given, results, strict=False):
        row = by_id[result.msg_id]
        assert (body_of(row), row["tags"], row["flag"]) == (message.body, message.tags, message.flag)
        assert row["keys"] == message.keys
        assert message.properties.items() <= row["properties"].items()
        if not message.delay_level:
            assert row["offsetMsgId"] == result.offset_msg_id
            assert (row["queueId"], row["queueOffset"]) == (result.queue.queue_id, result.queue_offset)
    large = by_id[results[2].msg_id]
    assert large["storeSize"] < 2000
    found = [by_id[each] for each in together.msg_id.split(",")]
    assert [body_of(row) for row in found] == [message.body for message in batch]
    assert [(row["tags"], row["keys"], row["properties"]["n"]) for row in found] == [
        (message.tags, message.keys, message.properties["n"]) for message in batch
    ]
    assert [row["offsetMsgId"] for row in found] == together.offset_msg_id.split(",")


class Bank:
    """Says of each transaction what its argument says, and of those asked for what the body says."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def execute_local_transaction(self, _message: Message, argument: Any) -> LocalTransactionState | None:
        return argument  # type: ignore[no-any-return]

    def check_local_transaction(self, message: Any) -> LocalTransactionState | None:
        self.asked.append(message.body)
        return COMMIT if b"commit" in message.body else ROLLBACK


def test_java_gets_what_was_committed_at_once_or_when_asked_and_nothing_else(each_cluster: Cluster) -> None:
    topic, bank = "transactions", Bank()
    committed = {b"plain", b"committed", b"asked, then commit", b"killed, then commit"}
    with Producer("first", name_server=each_cluster.name_server) as producer:
        producer.send(Message(topic, b"plain"))
    path = os.pathsep.join([str(Path(rmqfast.__file__).parents[1]), str(ROOT)])
    words = [each_cluster.name_server, "bank", topic, "killed, then commit"]
    killed = subprocess.run(
        [sys.executable, "-m", "tests.client.producer.dying_producer", *words],
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
        check=False,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL
    with TransactionProducer("bank", bank, name_server=each_cluster.name_server) as producer:
        sent = {
            body: producer.send_in_transaction(Message(topic, body, "t", properties={"own": "1"}), state)
            for body, state in [
                (b"committed", COMMIT),
                (b"rolled back", ROLLBACK),
                (b"asked, then commit", UNKNOWN),
                (b"asked, then not", None),
            ]
        }
        expected = {b"asked, then commit", b"asked, then not", b"killed, then commit"}
        until(lambda: expected <= set(bank.asked), lambda: bank.asked, patience=2 * PATIENCE)
        # a broker may ask before it has noted that a transaction ended, and stores each commit that it is told
        until(lambda: committed <= {body_of(row) for row in consumed(each_cluster, topic)})
    rows = {body_of(row): row for row in consumed(each_cluster, topic)}
    assert set(rows) == committed
    for body in (b"committed", b"asked, then commit"):
        assert rows[body]["msgId"] == sent[body].send_result.transaction_id
        assert rows[body]["properties"]["own"] == "1"
        assert rows[body]["properties"]["PGROUP"] == "bank"
