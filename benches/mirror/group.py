"""The group `mirror`: copies of a real broker's log beside a socket that drops it, and pulls of the same rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from broker import wire
from broker.group import together
from broker.sides import RocketMQ, Side
from client.group import rmqfast_process
from data import Dataset, discard, scratch_dir
from groups import Plan
from live.peers import KEEPS, entered, follower, reader
from live.sized import difference, repeated
from measurement import Series, Variants, interleave
from peer import Answer, Peer

#: Messages a second, bytes of a body, seconds.
LAG = (20_000, 200, 15)
FEW = 8
PULLS = 32


def mirror(plan: Plan) -> list[Series]:
    """Catching up, its cost for the master, and the lag, of each dataset."""
    found: list[Series] = []
    for dataset in plan.live:
        try:
            with ExitStack() as stack:
                broker = entered(stack, RocketMQ, dataset, KEEPS)
                child, puller = stack.enter_context(follower()), stack.enter_context(reader())
                found += catching_up(plan, dataset, broker, child, puller)
                found += lag(plan, dataset, broker, child, stack.enter_context(rmqfast_process()))
        finally:
            discard(dataset)
    return found


def catching_up(plan: Plan, dataset: Dataset, broker: Side, child: Peer, puller: Peer) -> list[Series]:
    """The sides in turns. A round's answer is what the whole log takes more than the last of its files."""
    at, scratch, ha_port = dataset.label, scratch_dir() / "mirror", broker.broker_port + 1
    end, last = dataset.log_end, dataset.last_file

    def once(what: str, begin: int) -> Answer:
        shutil.rmtree(scratch, ignore_errors=True)
        os.sync()  # nobody's dirty pages are left to be written
        try:
            return costed(broker, partial(child.ask, what, f"127.0.0.1:{ha_port}", begin, end, scratch))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def job(what: str) -> Callable[[], Answer]:
        def round_() -> Answer:
            whole, part = partial(once, what, 0), partial(once, what, last) if last > 0 else None
            answer = repeated(whole, part, plan.live_seconds)
            return {**answer, "rows": round(answer["rows"] / dataset.record)}

        return round_

    queue_rows = dataset.rows // 4

    def pulls() -> Answer:
        def ask(rows: int) -> Answer:
            return costed(broker, partial(puller.ask, "pull", broker.name_server, PULLS, 1, rows))

        return difference(ask(queue_rows), ask(FEW))

    variants: Variants = {f"mirror {name} {at}": job(name) for name in ("bare", "written", "log", "lists")}
    variants[f"mirror pulls {at}"] = pulls
    return interleave(variants, plan.effort, [])


def costed(broker: Side, run: Callable[[], Answer]) -> Answer:
    """The answer with the CPU seconds of the broker in place of those of the reader."""
    before = broker.cpu_seconds
    answer = run()
    return {**answer, "cpu_seconds": broker.cpu_seconds - before}


def lag(plan: Plan, dataset: Dataset, broker: Side, child: Peer, sender: Peer) -> list[Series]:
    """Age of the newest message of a mirror, and of a bare follower beside it."""
    rate, body, seconds = LAG
    at, scratch = dataset.label, scratch_dir() / "mirror"
    series = [Series(f"mirror lag {at} {name}") for name in ("mirror", "bare")]
    wire.create_topic(broker.address, "sent", 4)
    sender.ask("connect", broker.name_server)

    def once() -> dict[str, Answer]:
        shutil.rmtree(scratch, ignore_errors=True)
        try:
            begun = child.ask("begin_lag", broker.name_server, f"127.0.0.1:{broker.broker_port + 1}", scratch)
            sender.ask("paced", "sent", body, rate * seconds, rate)
            ages = child.ask("end_lag")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        shared = {"rows": rate * seconds, "seconds": float(seconds), "cpu_seconds": 0.0}
        return {name: {**begun, **shared, "value": ages[name]} for name in ("mirror", "bare")}

    together(series, once, plan.effort.repeat)
    return series
