"""Four readers beside a real broker under load: each message once, no damage; the broker's figures are printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rmqfast
from tests.effort import effort
from tests.interop.rocketmq import RocketMQ, java

SECONDS = effort("RMQFAST_TAIL_SECONDS", 15, 30)
RATE = int(os.environ.get("RMQFAST_TAIL_RATE", "20000"))
SMALL_FILES = ("mappedFileSizeCommitLog=16777216", "mappedFileSizeConsumeQueue=200000", "maxHashSlotNum=100000")
READERS = 4

READER = """
import json, sys, threading, time
import rmqfast
path, start, out = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "wb")
tail = rmqfast.open_store(path).tail("T", start=start, columns=["physical_offset", "body"], poll_interval=0.05)
def close():
    end = int(sys.stdin.readline())
    while tail.position < end:
        time.sleep(0.05)
    tail.close()
threading.Thread(target=close, daemon=True).start()
print("ready", flush=True)
bodies = 0
for batch in tail:
    out.write(batch.column("physical_offset").to_numpy().tobytes())
    bodies += batch.column("body").nbytes
out.close()
print(json.dumps({"damage": tail.damage, "retained": tail.retained, "cpu": time.process_time()}), flush=True)
"""


@contextmanager
def broker(directory: Path) -> Iterator[str]:
    """A name server's address; broker and name server end with the block."""
    with RocketMQ("4.9.4", directory, *SMALL_FILES) as cluster:
        cluster.create_topic("T", 4)
        yield cluster.name_server


def load(address: str) -> dict[str, Any]:
    """Sends at the rate that is asked for, and tells how it went."""
    options = ("--namesrv", address, "--topic", "T", "--rate", RATE, "--seconds", SECONDS)
    told: dict[str, Any] = json.loads(java("4.9.4", "Load", *options, seconds=SECONDS + 120))
    return told


@contextmanager
def readers(store: Path, start: int, outs: list[Path]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that follow the store from `start` on."""
    with ExitStack() as stack:
        processes = []
        for out in outs:
            command = [sys.executable, "-c", READER, str(store), str(start), str(out)]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            processes.append(stack.enter_context(process))
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield processes


def ended(process: subprocess.Popen[str], end: int) -> dict[str, Any]:
    """What a reader says when it has come to `end`."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{end}\n")
    process.stdin.flush()
    told: dict[str, Any] = json.loads(process.stdout.readline())
    return told


@pytest.mark.long
@pytest.mark.timeout(2 * SECONDS + 600)
def test_four_readers_beside_a_broker_under_load_see_each_message_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "mq" / "store"
    outs = [tmp_path / f"offsets-{n}" for n in range(READERS)]
    with broker(tmp_path / "mq") as address:
        alone = load(address)
        start = rmqfast.open_store(store).tail().position
        with readers(store, start, outs) as processes:
            beside = load(address)
            end = rmqfast.open_store(store).tail().position
            told = [ended(process, end) for process in processes]
            assert [process.wait(60) for process in processes] == [0] * READERS
    with capsys.disabled():
        cpu = [round(reader["cpu"], 1) for reader in told]
        sys.stdout.write(f"\nalone:  {json.dumps(alone)}\nbeside: {json.dumps(beside)}\nreaders' CPU seconds: {cpu}\n")
    assert [(reader["damage"], reader["retained"]) for reader in told] == [([], [])] * READERS
    stored = rmqfast.open_store(store).scan("T", columns=["physical_offset"], way="log").to_arrow()
    expected = stored["physical_offset"].to_numpy()
    expected = expected[expected >= start]
    assert len(expected) >= beside["messages"] > 0
    for out in outs:
        assert np.array_equal(np.fromfile(out, dtype=np.int64), expected)
