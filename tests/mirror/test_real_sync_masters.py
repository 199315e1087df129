"""A mirror at a SYNC_MASTER of RocketMQ 5.x, which counts reports: no send ends well by it, and none waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast import Message, Mirror, Producer
from tests.interop.rocketmq import RocketMQ
from tests.mirror.copies import SMALL, assert_same, caught_up
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

#: It waits for nobody unless it is told how many are to have a message, itself included.
WAITS = ("brokerRole=SYNC_MASTER", "inSyncReplicas=2", "slaveTimeout=1000", "timerWheelEnable=false")


def sent(name_server: str, count: int) -> set[str]:
    """The statuses of so many sends."""
    with Producer("sync", name_server=name_server) as producer:
        return {producer.send(Message("orders", b"%d " % number * 200)).status.name for number in range(count)}


def test_sends_neither_wait_for_a_mirror_nor_end_well_by_it(tmp_path: Path) -> None:
    with RocketMQ("5.3.3", tmp_path / "master", *SMALL, *WAITS, clean=False) as master:
        master.create_topic("orders", 4)
        own = ("brokerName=broker-a", "brokerId=1", "brokerRole=SLAVE", *SMALL)
        with RocketMQ("5.3.3", tmp_path / "slave", *own, beside=master, clean=False) as slave:
            until(lambda: sent(master.name_server, 1) == {"SEND_OK"})
            copies = tmp_path / "copies"
            # all of it is settled: its start is that of the log
            with Mirror(copies, name_server=master.name_server) as mirror:
                assert caught_up(mirror, master.store).source.endswith(f":{master.broker_port + 1}")
                assert sent(master.name_server, 500) == {"SEND_OK"}
                caught_up(mirror, master.store)
            assert sent(master.name_server, 50) == {"SEND_OK"}
            with Mirror(copies, name_server=master.name_server) as mirror:
                # it goes on near the end, where a send may wait that its request would end
                until(lambda: "so that it ends no send that waits" in mirror.status()[0].note)
                assert sent(master.name_server, 50) == {"SEND_OK"}
                caught_up(mirror, master.store)
                slave.kill9()
                until(lambda: sent(master.name_server, 1) == {"FLUSH_SLAVE_TIMEOUT"})
                # the mirror has each of them at once
                assert sent(master.name_server, 5) == {"FLUSH_SLAVE_TIMEOUT"}
                status = caught_up(mirror, master.store)
        assert_same(master.store, status.directory)
