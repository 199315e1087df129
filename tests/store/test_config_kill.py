"""A process that is killed while it saves its configuration leaves the old one or the new one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rmqfast.store import ConsumerOffsetTable, TopicConfigTable
from tests.effort import effort

# saves generation after generation, and says so after each
SAVER = """
import sys
from rmqfast.store import ConsumerOffsetTable, TopicConfig, TopicConfigTable
root, generation = sys.argv[1], int(sys.argv[2])
offsets, topics = ConsumerOffsetTable.load(root), TopicConfigTable.load(root)
while True:
    generation += 1
    for queue in range(200):
        offsets.commit("T", "g", queue, generation)
    topics.put(TopicConfig(topic_name=f"T{generation % 50}"), now=generation)
    offsets.save(root)
    topics.save(root)
    print(generation, flush=True)
"""


def kill_while_saving(root: Path, generation: int, wait: float) -> int:
    """Lets a process save from `generation` on, kills it `wait` seconds after its first save; what it said last."""
    command = [sys.executable, "-c", SAVER, str(root), str(generation)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as saver:
        assert saver.stdout is not None
        said = [saver.stdout.readline()]
        time.sleep(wait)  # noqa: TID251 - when it is killed is chance, and no matter
        os.kill(saver.pid, signal.SIGKILL)
        said += saver.stdout.read().splitlines(keepends=True)
    return int([line for line in said if line.endswith("\n")][-1])


def kills(root: Path, count: int, generation: int = 0) -> tuple[int, int]:
    """How many saves there were by now, and how many of the killed processes left one that they had not told of."""
    chance, untold = random.Random(generation + count), 0
    for _ in range(count):
        told = kill_while_saving(root, generation, chance.uniform(0, 0.02))
        offsets = ConsumerOffsetTable.load(root)
        found = set(offsets["T", "g"].values())
        assert len(offsets["T", "g"]) == 200
        assert found in ({told}, {told + 1})
        topics = TopicConfigTable.load(root).data_version.counter
        assert topics in {told, told + 1}
        generation, untold = topics, untold + (topics != told)
    return generation, untold


def test_a_process_that_is_killed_while_it_saves_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    saves, _ = kills(tmp_path, 5)
    assert saves >= 5


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_many_kills_leave_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """A thousand times with RMQFAST_FULL=1, or as RMQFAST_KILLS says."""
    count = effort("RMQFAST_KILLS", 150, 1000)
    saves, untold = kills(tmp_path, count)
    assert saves >= count
    while not untold:  # none was killed in the middle of a save yet
        saves, untold = kills(tmp_path, 10, saves)
