"""The groups of measurements on one machine without a cluster: which engines run on which data."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import limits
import queries
import rows
from data import QUEUES, TAG, TOPIC, Dataset, discard, scratch_dir, store
from measurement import Effort, Series, Variants, checked, interleave, take
from peer import Answer, Failed, MemoryWatch, Missing, Peer
from rocketmq import linked_copy, store_peer


@dataclass(frozen=True)
class Plan:
    """The data, the repetitions and the interpreters of a run."""

    datasets: tuple[Dataset, ...]
    live: tuple[Dataset, ...]  # what brokers and Spark give one another
    live_seconds: float  # of the larger one of two jobs
    cells: tuple[str, ...]  # of the group live; none: those that need no asking
    effort: Effort
    memory_gib: float
    growth_gib: tuple[float, float]
    spark_python: str
    kafka_python: str

    @property
    def scale(self) -> float:
        """1; less of a quick run."""
        return 1.0 if self.memory_gib >= 5 else 0.05


def scan(plan: Plan) -> list[Series]:
    """Whole topics to Arrow, and the memory's own speed."""
    found = [series for dataset in plan.datasets for series in scan_of(dataset, plan.effort)]
    copied = min(1 << 30, plan.datasets[0].body_bytes)
    return found + interleave({"memcpy": lambda: limits.memory_copy(copied)}, plan.effort, [])


def scan_of(dataset: Dataset, effort: Effort) -> list[Series]:
    """The scans of one dataset."""
    path, at, count, total = store(dataset), dataset.label, dataset.rows, dataset.body_bytes
    with ExitStack() as stack:
        ours, theirs = rmqfast_peer(stack), rocketmq_peer(stack, path)

        def rmqfast(*request: object) -> Callable[[], Answer]:
            return lambda: checked(ours("scan", path, *request), rows=count)

        variants: Variants = {
            f"scan bare Rust loop {at}": lambda: checked(limits.bare_scan(path), rows=count),
            f"scan RocketMQ decoded {at}": lambda: checked(
                theirs("decoded", TOPIC, QUEUES), rows=count, body_bytes=total
            ),
            f"scan rmqfast {at}": rmqfast("no_properties"),
            f"scan rmqfast CRC {at}": rmqfast("no_properties", "crc"),
            f"scan rmqfast all {at}": rmqfast("all"),
            f"scan rmqfast narrow {at}": rmqfast("narrow"),
            f"scan rmqfast eight {at}": rmqfast("eight"),
            f"scan rmqfast leased {at}": rmqfast("eight", "", "auto"),
            f"scan rmqfast mapped {at}": rmqfast("no_properties", "", "mmap"),
        }
        return interleave(variants, effort, [path])


def tag(plan: Plan) -> list[Series]:
    """One tag of a hundred; a row is an entry examined."""
    return [series for dataset in plan.datasets for series in tag_of(dataset, plan.effort)]


def tag_of(dataset: Dataset, effort: Effort) -> list[Series]:
    """The tag scans of one dataset."""
    path, at, hits = store(dataset), dataset.label, dataset.tagged_rows
    with ExitStack() as stack:
        ours, theirs = rmqfast_peer(stack), rocketmq_peer(stack, path)
        variants: Variants = {
            f"tag RocketMQ {at}": lambda: checked(theirs("tagged", TOPIC, QUEUES, TAG), returned=hits),
            f"tag rmqfast {at}": lambda: checked(ours("tagged", path, TAG, dataset.rows), returned=hits),
            f"tag rmqfast leased {at}": lambda: checked(ours("tagged", path, TAG, dataset.rows, "auto"), returned=hits),
            f"tag rmqfast mapped {at}": lambda: checked(ours("tagged", path, TAG, dataset.rows, "mmap"), returned=hits),
        }
        return interleave(variants, effort, [path])


def query(plan: Plan) -> list[Series]:
    """SQL and lazy frames beside a scan by hand, and beside Parquet."""
    return [series for dataset in plan.datasets for series in query_of(dataset, plan.effort)]


def query_of(dataset: Dataset, effort: Effort) -> list[Series]:
    """The queries of one dataset; a row is a message that the query has to look at."""
    path, at, count, hits = store(dataset), dataset.label, dataset.rows, dataset.tagged_rows
    with ExitStack() as stack:
        ask = stack.enter_context(Peer(queries.command(), log("queries"))).ask
        variants: Variants = {
            f"query by hand {at}": lambda: checked(ask("by_hand", path, count), returned=hits),
            f"query DuckDB {at}": lambda: checked(ask("by_duckdb", path, count), returned=hits),
            f"query Polars {at}": lambda: checked(ask("by_polars", path, count), returned=hits),
            f"query groups {at}": lambda: checked(ask("grouped", path), rows=count),
            f"query groups Parquet {at}": lambda: checked(ask("grouped_parquet", at, dataset.body, count), rows=count),
        }
        return interleave(variants, effort, [path])


def append(plan: Plan) -> list[Series]:
    """New stores of the same messages; each run begins with clean disks and an empty directory."""
    return [series for dataset in plan.datasets for series in append_of(dataset, plan.effort)]


def append_of(dataset: Dataset, effort: Effort) -> list[Series]:
    """The appends of one dataset."""
    at, directory, size, count = dataset.label, scratch_dir() / "append", dataset.body, dataset.rows
    with ExitStack() as stack:
        ours, theirs = rmqfast_peer(stack), rocketmq_peer(stack)

        def rmqfast() -> Answer:
            return checked(ours("append", directory, size, count), queued=count)

        variants: Variants = {
            f"append RocketMQ {at}": fresh(directory, lambda: theirs("append", directory, TOPIC, QUEUES, size, count)),
            f"append rmqfast {at}": fresh(directory, rmqfast),
            f"append rmqfast singly {at}": fresh(
                directory, lambda: checked(ours("append_singly", directory, size, count // 4), queued=count // 4)
            ),
            f"append Rust caller {at}": fresh(directory, lambda: limits.append_loop("singly", dataset, directory)),
            f"append bare maps {at}": fresh(directory, lambda: limits.append_loop("bare", dataset, directory)),
        }
        return interleave(variants, effort, [])


def fresh(directory: Path, run: Callable[[], Answer]) -> Callable[[], Answer]:
    """The run with its directory gone and nobody's dirty pages left to write before it."""

    def clean_run() -> Answer:
        shutil.rmtree(directory, ignore_errors=True)
        os.sync()
        try:
            return run()
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    return clean_run


def memory(plan: Plan) -> list[Series]:
    """Peak of anonymous memory while a fresh process scans a large store."""
    dataset, series = sized("memory", plan.memory_gib), Series("memory rmqfast")
    try:
        for _ in range(plan.effort.repeat):
            if series.missing is None:
                take(series, lambda: watched_scan(dataset))
    finally:
        discard(dataset)
    return [series]


def watched_scan(dataset: Dataset) -> Answer:
    """One scan with its peak in MiB as the value."""
    limits.require_rmqfast()
    path = store(dataset)
    with Peer(rows.command(), log("rows")) as peer, MemoryWatch(peer.pid) as watch:
        answer = checked(peer.ask("scan", path, "all"), rows=dataset.rows)
    return {**answer, "value": watch.peak_bytes / 2**20}


def growth(plan: Plan) -> list[Series]:
    """Seconds per GiB of a small and of a large store."""
    small, large = (sized(f"growth{gib:g}", gib) for gib in plan.growth_gib)
    try:
        return growth_of(small, large, plan.effort)
    finally:
        for dataset in (small, large):
            discard(dataset)


def growth_of(small: Dataset, large: Dataset, effort: Effort) -> list[Series]:
    """The scans of both stores, in turns."""
    limits.require_rmqfast()
    paths = store(small), store(large)
    with ExitStack() as stack:
        ours = rmqfast_peer(stack)
        variants: Variants = {
            "growth small": lambda: checked(ours("scan", paths[0]), rows=small.rows),
            "growth large": lambda: checked(ours("scan", paths[1]), rows=large.rows),
        }
        return interleave(variants, effort, paths)


def sized(label: str, gib: float) -> Dataset:
    """A dataset of 1 KiB bodies whose log takes so many GiB."""
    return Dataset(label, 1024, int(gib * 2**30) // Dataset(label, 1024, 1).record)


def imports(plan: Plan) -> list[Series]:
    """Importing the package in a fresh interpreter."""
    return interleave({"import rmqfast": limits.import_time}, plan.effort, [])


def rmqfast_peer(stack: ExitStack) -> Callable[..., Answer]:
    """Requests to a Python process with rmqfast, which ends with the stack."""
    return stack.enter_context(Peer(rows.command(), log("rows"))).ask


def rocketmq_peer(stack: ExitStack, path: Path | None = None) -> Callable[..., Answer]:
    """Requests to RocketMQ's store, opened on a linked copy; where it cannot start, each request gives the reason."""
    try:
        peer = stack.enter_context(store_peer())
        if path is not None:
            copy = linked_copy(path)
            stack.callback(shutil.rmtree, copy, ignore_errors=True)
            peer.ask("open", copy)
    except (Missing, Failed) as error:
        return refusal(error)
    return peer.ask


def refusal(error: Exception) -> Callable[..., Answer]:
    """Requests that all give the same reason why there is no figure."""

    def refuse(*_: object) -> Answer:
        raise error

    return refuse


def log(name: str) -> Path:
    """The log file of a child process."""
    return scratch_dir() / "logs" / f"{name}.log"
