"""The group of tables: ingests of a store beside the same rows written from memory."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack

import lakes
import limits
import rows
from data import Dataset, discard, scratch_dir, store
from groups import Plan, log, sized
from measurement import Effort, Series, Variants, checked, interleave, take
from peer import Answer, MemoryWatch, Peer

FORMATS = {"parquet": "pyarrow", "delta": "deltalake", "iceberg": "pyiceberg"}


def ingest(plan: Plan) -> list[Series]:
    """Whole stores to tables, their row groups, and their memory."""
    found = [series for dataset in plan.datasets for series in ingest_of(dataset, plan.effort)]
    try:
        return [*found, row_groups(plan), memory(plan)]
    finally:
        for name in ("ingest", "from-memory"):
            shutil.rmtree(scratch_dir() / name, ignore_errors=True)


def ingest_of(dataset: Dataset, effort: Effort) -> list[Series]:
    """The ingests of one dataset, whole and beyond the scan of the same messages."""
    limits.require_rmqfast()
    path, at, count = store(dataset), dataset.label, dataset.rows
    with ExitStack() as stack:
        ours = stack.enter_context(Peer(lakes.command(), log("lakes"))).ask
        # of its own: it keeps the rows in memory
        theirs = stack.enter_context(Peer(lakes.command(), log("lakes"))).ask

        def of(ask: Callable[..., Answer], what: str, *arguments: str) -> Callable[[], Answer]:
            return lambda: checked(ask(what, path, *arguments), rows=count)

        variants: Variants = {f"ingest scan {at}": of(ours, "scan")}
        for form, library in FORMATS.items():
            variants[f"ingest {form} {at}"] = of(ours, "ingest", form)
            variants[f"ingest {form} beyond scan {at}"] = of(ours, "beyond_scan", form)
            variants[f"ingest {library} {at}"] = of(theirs, "from_memory", form)
        return interleave(variants, effort, [path])


def row_groups(plan: Plan) -> Series:
    """The smallest row groups of fifty topics of equal size."""
    series, count = Series("ingest row groups"), int(4_500_000 * plan.scale)
    path = lakes.many_topics_store(rows.rmqfast(), count)
    try:
        with Peer(lakes.command(), log("lakes")) as peer:
            take(series, lambda: checked(peer.ask("row_groups", path), topics=lakes.MANY))
    finally:
        shutil.rmtree(path, ignore_errors=True)
        path.with_suffix(".done").unlink(missing_ok=True)
    return series


def memory(plan: Plan) -> Series:
    """Peak of anonymous memory while a fresh process writes a large store to a table."""
    dataset, series = sized("ingested", plan.memory_gib), Series("ingest memory")
    try:
        take(series, lambda: watched(dataset))
    finally:
        discard(dataset)
    return series


def watched(dataset: Dataset) -> Answer:
    """One ingest with its peak in MiB as the value."""
    path = store(dataset)
    with Peer(lakes.command(), log("lakes")) as peer, MemoryWatch(peer.pid) as watch:
        answer = checked(peer.ask("ingest", path, "delta"), rows=dataset.rows)
    return {**answer, "value": watch.peak_bytes / 2**20}
