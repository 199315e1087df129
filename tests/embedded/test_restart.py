"""What a broker knows after it was stopped and started again, or killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rmqfast import AppendOptions, EmbeddedCluster, Message, WritableStore, open_store
from rmqfast.broker import Broker
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import decode
from rmqfast.store import AppendResult
from tests.embedded.client import SMALL, Clock, broker_config, pull, send
from tests.waiting import PATIENCE, until

KILLED = """
import sys
from rmqfast import EmbeddedCluster
from tests.embedded.client import SMALL, address_of, send
cluster = EmbeddedCluster(sys.argv[1], config=SMALL | {"messageDelayLevel": "1h 7s"})
cluster.start()
print(send(address_of(cluster), "orders", b"late", DELAY="2").code, flush=True)
sys.stdin.read()
"""


HOUR = 3_600_000


def broker(root: Path, *, now: Clock, **config: str) -> Broker:
    return Broker(broker_config(root, **config), now=now)


def half_offset(address: str) -> int:
    with RemotingClient(address, timeout=PATIENCE) as client:
        fields = {"topic": "RMQ_SYS_TRANS_HALF_TOPIC", "queueId": "0"}
        return int((client.request(RequestCode.GET_MAX_OFFSET, fields).ext_fields or {})["offset"])


@pytest.mark.usefixtures("early_deliveries")
def test_topics_groups_offsets_delayed_and_half_messages_outlive_a_restart(tmp_path: Path) -> None:
    group = {"groupName": "G", "retryMaxTimes": 3}
    offset = {"consumerGroup": "G", "topic": "orders", "queueId": "0"}
    with broker(tmp_path, now=Clock(), messageDelayLevel="1h") as first:
        address = first.address
        assert send(address, "orders", b"kept").code == 0
        assert send(address, "orders", b"half", TRAN_MSG="true", PGROUP="P").code == 0
        assert send(address, "orders", b"late", DELAY="1").code == 0
        with RemotingClient(address, timeout=PATIENCE) as client:
            body = json.dumps(group).encode()
            assert client.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body).code == 0
            client.send_oneway(RequestCode.UPDATE_CONSUMER_OFFSET, offset | {"commitOffset": "1"})
            until(lambda: client.request(RequestCode.QUERY_CONSUMER_OFFSET, offset).ext_fields == {"offset": "1"})
    with broker(tmp_path, now=Clock(ahead=HOUR), messageDelayLevel="1h") as second:
        address = second.address
        with RemotingClient(address, timeout=PATIENCE) as client:
            assert client.request(RequestCode.QUERY_CONSUMER_OFFSET, offset).ext_fields == {"offset": "1"}
            topics = decode(client.request(RequestCode.GET_ALL_TOPIC_CONFIG).body)["topicConfigTable"]
            groups = decode(client.request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG).body)
        assert "orders" in topics
        assert groups["subscriptionGroupTable"]["G"]["retryMaxTimes"] == 3
        assert b"kept" in pull(address, "orders").body
        assert half_offset(address) == 1
        until(lambda: b"late" in pull(address, "orders", offset=1).body)


@pytest.mark.parametrize("is_crashed", [False, True])
def test_messages_of_a_deleted_topic_are_nobodys_when_it_is_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_crashed: bool
) -> None:
    """A real 4.9.4 gives them to the new one: `test_real_broker_forgets_no_deleted_topic`."""
    place = {"topic": "orders", "queueId": "0"}
    with broker(tmp_path, now=Clock()) as first:
        for _ in range(3):
            assert send(first.address, "orders", b"old").code == 0
        with RemotingClient(first.address, timeout=PATIENCE) as client:
            client.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"})
    if is_crashed:
        (tmp_path / "abort").touch()
    with broker(tmp_path, now=Clock()) as second:
        assert ("it was not closed" in caplog.text) is is_crashed
        with RemotingClient(second.address, timeout=PATIENCE) as client:
            assert client.ask(RequestCode.GET_MAX_OFFSET, place).ext_fields == {"offset": "0"}
        assert send(second.address, "orders", b"new").code == 0
        answer = pull(second.address, "orders")
        assert (b"new" in answer.body, b"old" in answer.body) == (True, False)
        assert (answer.ext_fields or {})["maxOffset"] == "1"


def test_a_start_without_the_offsets_of_its_groups_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def warnings() -> list[str]:
        found = [
            record.getMessage() for record in caplog.records if "each begins as a new group" in record.getMessage()
        ]
        caplog.clear()
        return found

    with broker(tmp_path, now=Clock()) as first:
        assert send(first.address, "orders", b"x").code == 0
        with RemotingClient(first.address, timeout=PATIENCE) as client:
            body = json.dumps({"groupName": "G"}).encode()
            assert client.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body).code == 0
    with broker(tmp_path, now=Clock()):
        assert warnings() == []  # of a group that has consumed nothing
    (tmp_path / "config" / "metadata.db").unlink()  # what it knows would be written anew
    for file in (tmp_path / "config").glob("consumerOffset.json*"):
        file.unlink()
    with open_store(tmp_path) as store:
        [note] = store.info().notes
        assert store.verify().notes == [note]
    with broker(tmp_path, now=Clock()):
        assert warnings() == [note]
    assert f"{tmp_path}/config/consumerOffset.json: missing" in note
    assert "groups (G)" in note
    with broker(tmp_path, now=Clock()):
        assert warnings() == []


@pytest.mark.usefixtures("early_deliveries")
def test_delay_levels_of_ones_own_count_for_messages_that_are_sent(tmp_path: Path) -> None:
    clock = Clock()
    with broker(tmp_path, now=clock, messageDelayLevel="2h 1h") as running:
        address = running.address
        for body, level in ((b"never", "1"), (b"soon", "2"), (b"highest", "9")):
            assert send(address, "orders", body, DELAY=level).code == 0
        clock.ahead = HOUR
        until(lambda: b"highest" in pull(address, "orders").body)
        assert b"soon" in pull(address, "orders").body
        assert b"never" not in pull(address, "orders").body


def test_delay_levels_of_ones_own_count_when_queues_are_listed_anew(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"0\n"
        os.kill(process.pid, signal.SIGKILL)
    for file in sorted((tmp_path / "consumequeue").rglob("0*")):
        file.unlink()
    options = AppendOptions(file_size=1 << 20, delay_levels=(3600, 7))
    with open_store(tmp_path, mode="a", options=options) as store:
        unit = store.live.unit("SCHEDULE_TOPIC_XXXX", 1, 0)
        assert unit is not None
        assert unit[2] == store.live.store_time("SCHEDULE_TOPIC_XXXX", 1, 0) + 7_000


def test_what_the_broker_itself_stores_does_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[bool] = []
    append = WritableStore.append

    def noted(store: WritableStore, *args: Any, **sent: Any) -> AppendResult:
        waits.append(sent.get("waits", True))
        return append(store, *args, **sent)

    monkeypatch.setattr(WritableStore, "append", noted)
    with EmbeddedCluster(tmp_path, config=SMALL | {"flushDiskType": "SYNC_FLUSH"}) as cluster:
        own = cluster.brokers[0].state.appends
        for append_one in (own.append, own.append_due, own.append_reply):
            append_one(Message("orders", b"x"))
    assert waits == [False] * 3


@pytest.mark.parametrize("level", ["", "1", "1x", " ".join(["1s"] * 33)])
def test_delay_levels_that_make_no_sense_are_refused(level: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"messageDelayLevel|delay_levels"):
        EmbeddedCluster(tmp_path, config=SMALL | {"messageDelayLevel": level}).start()
    assert not (tmp_path / "abort").exists()
