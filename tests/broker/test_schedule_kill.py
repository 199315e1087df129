"""A process that delivers delayed messages from a real store and is killed: what the next one finds."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast import AppendOptions, Message, WritableStore
from rmqfast.broker.delay.schedule import ScheduleMessageService, TimeOfDay
from rmqfast.broker.metadata import Metadata
from rmqfast.store import AppendResult

pytestmark = pytest.mark.slow
COUNT = 400
OPTIONS = AppendOptions(file_size=1 << 20, queue_file_size=20 * COUNT, index_slots=1000, index_entries=4000)
NOW = 1_800_000_000_000
ROOT = Path(__file__).parents[2]


def service_of(store: WritableStore, metadata: Metadata, batch: int) -> ScheduleMessageService:
    def deliver(message: Message, **sent: Any) -> AppendResult:
        # this store would delay the message again
        kept = {name: value for name, value in message.properties.items() if name != "DELAY"}
        again = Message(message.topic, message.body, properties=kept, queue_id=message.queue_id)
        return store.append(again, **sent)

    return ScheduleMessageService(
        metadata,
        store.live,
        deliver,
        started=NOW - 2000,
        flush=store.flush,
        batch=batch,
        time_of_day=TimeOfDay(NOW, steady=lambda: NOW),
    )


def deliver_for_ever(path: Path) -> None:
    """What the killed process does: a turn for each line that comes. It saves each third time."""
    with rmqfast.open_store(path, mode="a", options=OPTIONS) as store, closing(Metadata(path)) as metadata:
        service = service_of(store, metadata, batch=7)
        for turn, _ in enumerate(sys.stdin):
            print(service.run_once(NOW), flush=True)  # noqa: T201
            if turn % 3 == 2:
                service.persist()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with messages of level 1 that are due."""
    with rmqfast.open_store(tmp_path / "s", mode="a", options=OPTIONS, clock=lambda: NOW - 5000) as store:
        for n in range(COUNT):
            store.append(Message("orders", b"%d" % n, properties={"DELAY": "1"}))
    return tmp_path / "s"


def killed(path: Path, turns: int) -> None:
    code = f"import pathlib, {__name__} as this; this.deliver_for_ever(pathlib.Path({str(path)!r}))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(rmqfast.__file__).parents[1]), str(ROOT)])}
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n" * (turns + 1))
        process.stdin.flush()
        for _ in range(turns):
            assert process.stdout.readline(), "the process ended by itself"
        process.send_signal(signal.SIGKILL)  # anywhere in the last turn


def runs(numbers: list[int]) -> Iterator[list[int]]:
    """Cuts where a number is not the one behind the number before it."""
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[start:at]
            start = at


def test_nothing_is_lost_and_each_process_goes_on_where_progress_was_saved(path: Path) -> None:
    for turns in (1, 5, 11):
        killed(path, turns)
    with rmqfast.open_store(path, mode="a", options=OPTIONS) as store, closing(Metadata(path)) as metadata:
        service = service_of(store, metadata, batch=COUNT)
        while service.run_once(NOW):
            pass
        service.persist()
        numbers = [int(row["body"]) for row in store.scan("orders", columns=["body"]).to_arrow().to_pylist()]
    assert set(numbers) == set(range(COUNT))
    found = list(runs(numbers))
    assert 2 <= len(found) <= 4
    # a process repeats what was delivered since the last save: three turns and the one that was under way
    for before, after in itertools.pairwise(found):
        assert before[-1] - 4 * 7 < after[0] <= before[-1]
