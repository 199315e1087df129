"""A broker whose disk is full says so, goes on to answer, and takes messages again once there is room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.small_disk import on_small_disk

FILLING = """
import os, re, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.broker.live_server import LiveServer, Wire, pull_fields, send_fields
from tests.waiting import until

disk = Path(sys.argv[1])
ballast = disk / "ballast"
REMARK = re.compile(
    r"service not available now\\. It may be caused by one of the following reasons: the broker's disk is "
    r"full \\[CL:  (0\\.\\d\\d) CQ:  (0\\.\\d\\d) INDEX:  (0\\.\\d\\d)\\], messages are put to the slave, "
    r"message store has been shut down, etc\\."
)

def fill(left):
    room = os.statvfs(disk)
    with ballast.open("ab") as file:
        file.write(bytes(max(room.f_bavail * room.f_frsize - left, 0)))

FULL = {"rocketmq.broker.diskSpaceWarningLevelRatio": "0.90", "rocketmq.broker.diskSpaceCleanForciblyRatio": "0.85"}
with LiveServer(disk / "server", {"mappedFileSizeCommitLog": "1048576"} | FULL) as server:
    with Wire(server.broker) as wire:
        bodies = []
        def send():
            body = b"%d" % len(bodies) * 200
            header, _ = wire.ask(310, send_fields("full"), body)
            if header["code"] == 0:
                assert int(header["extFields"]["queueOffset"]) == len(bodies), header
                bodies.append(body)
            return header
        assert send()["code"] == 0
        for cycle in range(2):
            fill(3 << 20)
            def is_full():
                header = send()
                assert header["code"] in {0, 14}, header
                found = REMARK.fullmatch(header.get("remark") or "")
                # the ratios are looked at every second
                return header["code"] == 14 and found and float(found[1]) > 0.9

            until(is_full, send)
            assert wire.ask(11, pull_fields("full", "g"))[0]["code"] == 0
            assert wire.ask(28)[0]["code"] == 0
            os.truncate(ballast, 0)
            until(lambda: send()["code"] == 0, send)
        # and one that fills within a moment, before anybody has looked
        fill(0)
        codes = set()
        for _ in range(6000):
            codes.add(send()["code"])
        assert codes <= {0, 1, 14}, codes
        assert codes & {1, 14}, codes
        os.truncate(ballast, 0)
        until(lambda: send()["code"] == 0, send)
        offset = 0
        while (answer := wire.ask(11, pull_fields("full", "g", offset=offset)))[0]["code"] == 0:
            after = int(answer[0]["extFields"]["nextBeginOffset"])
            assert all(body in answer[1] for body in bodies[offset:after])
            offset = after
        assert offset == len(bodies)
    assert server.stop() == 0
    print(len(bodies), [line for line in server.defects() if "No space" not in line])
"""


KILLED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.broker.harmed_files import TOPIC, pulled
from tests.broker.live_server import LiveServer, Wire, send_fields
from tests.waiting import until

disk = Path(sys.argv[1])
ballast = disk / "ballast"
bodies = []

def send(wire):
    body = b"%d;" % len(bodies) * 100
    header, _ = wire.ask(310, send_fields(TOPIC), body)
    if header["code"] == 0:
        bodies.append(body)
    return header["code"] == 0

with LiveServer(disk / "server", {"mappedFileSizeCommitLog": "4194304"}) as server:
    with Wire(server.broker) as wire:
        until(lambda: send(wire) and len(bodies) == 1000)
        fill(ballast)
        until(lambda: not send(wire))
    server.kill9()
    fill(ballast)
    server.start()
    with Wire(server.broker) as wire:
        assert set(bodies) <= set(pulled(wire, 0)[0])
        assert not send(wire), "the disk is full"
        os.truncate(ballast, 0)
        until(lambda: send(wire))
        assert set(bodies) <= set(pulled(wire, 0)[0])
"""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_full_disk_is_told_of_and_a_freed_one_takes_again(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    assert on_small_disk(FILLING, 64, tmp_path, root).endswith(" []\n")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_broker_that_is_killed_on_a_full_disk_starts_for_reads_and_loses_nothing(tmp_path: Path) -> None:
    on_small_disk(KILLED, 64, tmp_path, Path(__file__).parents[2])
