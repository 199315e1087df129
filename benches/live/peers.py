"""Both sides of a comparison: brokers that start with a dataset's messages, and processes that read them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from broker import wire
from broker.sides import LIMITS, Side
from data import QUEUES, TOPIC, Dataset, store
from groups import log
from machine import ROOT
from measurement import Series, unmeasured
from peer import Failed, Missing, Peer

BENCHES = Path(__file__).parent.parent
#: The datasets' messages are older than brokers keep any, and disks may be fuller than brokers like.
KEEPS = ("fileReservedTime=87600", "diskMaxUsedSpaceRatio=95")
RAISED = (*LIMITS, *KEEPS)
LACKING = (Missing, Failed, OSError, subprocess.SubprocessError)


def entered(stack: ExitStack, kind: type[Side], dataset: Dataset, limits: tuple[str, ...]) -> Side:
    """A cluster whose broker has the dataset's messages: the files of its store as they are."""
    side = stack.enter_context(kind(limits, store(dataset)))
    wire.create_topic(side.address, TOPIC, QUEUES)
    return side


def reader() -> Peer:
    """A process with the pulling reader."""
    return Peer([sys.executable, "-m", "live.reader"], log("reader"), {"PYTHONPATH": python_path(BENCHES)})


def follower() -> Peer:
    """A process that follows a log."""
    command = [sys.executable, "-m", "mirror.follower"]
    return Peer(command, log("follower"), {"PYTHONPATH": python_path(BENCHES)})


def spark(python: str, master: str, jars: str = "") -> Peer:
    """A process with a session of Spark."""
    command = [python, "-m", "live.jobs", master, *filter(None, [jars])]
    return Peer(command, log(f"live-{master}"), {"PYTHONPATH": python_path(BENCHES, ROOT)})


def python_path(*first: Path) -> str:
    """These directories, and what was on the path before."""
    return os.pathsep.join([*map(str, first), *filter(None, [os.environ.get("PYTHONPATH")])])


def attempted(names: Iterable[str], measure: Callable[[], list[Series]]) -> list[Series]:
    """The measured series, or the reason why they are missing."""
    try:
        return measure()
    except LACKING as error:
        return [unmeasured(name, error) for name in names]
