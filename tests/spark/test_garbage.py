"""A worker of Spark does not look through its imports behind each task; what tasks leave is collected as before."""

from __future__ import annotations

import gc
import weakref

import pytest

from rmqfast.spark import garbage


class Node:
    """What refers to itself, so that only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that runs a task, for the first time."""
    monkeypatch.setattr("pyspark.TaskContext.get", object)
    monkeypatch.setattr(garbage, "_is_frozen", False)


def test_only_a_worker_freezes_what_it_has_and_only_once(worker: None, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        garbage.freeze_imports_once()
        frozen = gc.get_freeze_count()
        assert frozen > 10_000
        assert len(gc.get_objects()) < frozen
        garbage.freeze_imports_once()
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()
    monkeypatch.undo()
    garbage.freeze_imports_once()
    assert gc.get_freeze_count() == 0


def test_what_comes_later_is_collected(worker: None) -> None:
    try:
        garbage.freeze_imports_once()
        later = weakref.ref(Node())
        gc.collect()
        assert later() is None
    finally:
        gc.unfreeze()
