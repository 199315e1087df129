"""The groups of the storage engine: recovery of a store that was left, appends that wait for the disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

import limits
from data import discard, scratch_dir, store
from groups import Plan, fresh, rmqfast_peer, rocketmq_peer, sized
from machine import ROOT
from measurement import Effort, Series, Variants, checked, interleave
from peer import Answer, Failed

THREADS, WAITING = 64, 32_000


def recovery(plan: Plan) -> list[Series]:
    """A large store without checkpoint and index, as it is and without its consume queues; a row is a byte."""
    dataset = sized("recovery", plan.growth_gib[1])
    try:
        with ExitStack() as stack:
            ours, theirs = rmqfast_peer(stack), rocketmq_peer(stack)
            path, copy = store(dataset), scratch_dir() / "left"
            log_end = int(dataset.physical_offsets(np.array([dataset.rows - 1]))[0]) + dataset.record

            def left(run: Callable[..., Answer], *, queues: bool) -> Callable[[], Answer]:
                answer = partial(left_behind, path, copy, run, queues=queues)
                return lambda: {**checked(answer(), log_end=log_end), "rows": dataset.log_bytes}

            variants: Variants = {
                "recovery RocketMQ": left(theirs, queues=True),
                "recovery rmqfast": left(ours, queues=True),
                "recovery rmqfast, no queues": left(ours, queues=False),
            }
            return interleave(variants, Effort(plan.effort.repeat, 1), [path])
    finally:
        discard(dataset)


def left_behind(path: Path, copy: Path, run: Callable[..., Answer], *, queues: bool) -> Answer:
    """The recovery of a copy whose log is linked, as nobody writes to it; the queues are copied."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path / "commitlog", copy / "commitlog", copy_function=os.link)
    if queues:
        shutil.copytree(path / "consumequeue", copy / "consumequeue")
    (copy / "abort").touch()
    os.sync()
    try:
        return run("recover", copy)
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def sync(plan: Plan) -> list[Series]:
    """Threads that wait for each of their messages to be on the disk, and groups as large as theirs written by one."""
    variants: Variants = {
        f"{name} {dataset.label}": fresh(scratch_dir() / "append", partial(waits, name, dataset.body))
        for dataset in plan.datasets
        for name in ("sync bare groups", "sync appends")
    }
    return interleave(variants, Effort(plan.effort.repeat, 1), [])


def waits(name: str, body: int) -> Answer:
    """One line of the example."""
    command = [*limits.example("sync_loop"), str(scratch_dir() / "append"), str(THREADS), str(WAITING), str(body)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"sync_loop: {done.stderr.strip()[-300:]}")
    loops = {loop["name"]: loop for loop in map(json.loads, done.stdout.splitlines())}
    answer: Answer = loops["bare groups" if "bare" in name else "sync appends"]
    return answer
