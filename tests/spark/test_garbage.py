"""A worker of Spark does not look through its imports behind each task; what tasks leave is collected as before."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from rmqfast.spark import task

# Counts of the collector are of a whole process: an interpreter of its own has one thread and nothing else to free.
WORKER = """
import gc, weakref
from pyspark import TaskContext
from rmqfast.spark.task import freeze_imports_once

class Node:
    def __init__(self):
        self.itself = self  # only a collection frees it

TaskContext.get = object
freeze_imports_once()
later = weakref.ref(Node())
gc.collect()
print(gc.get_freeze_count() > 10_000, later() is None)
"""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the collector is asked for, by a process that has run no task yet."""
    made: list[str] = []
    collector = SimpleNamespace(collect=lambda: made.append("collect"), freeze=lambda: made.append("freeze"))
    monkeypatch.setattr(task, "gc", collector)
    monkeypatch.setattr(task, "_is_frozen", False)
    return made


def test_a_worker_freezes_what_it_has_and_only_once(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.TaskContext.get", object)
    task.freeze_imports_once()
    assert calls == ["collect", "freeze"]
    task.freeze_imports_once()
    assert calls == ["collect", "freeze"]


def test_a_process_that_runs_no_task_freezes_nothing(calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: None)
    task.freeze_imports_once()
    assert calls == []


def test_what_comes_later_is_collected() -> None:
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
