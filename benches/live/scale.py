"""The group `cluster`: the planning of many queues; one worker of a standalone cluster of Spark, and two."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial

from broker.sides import Rmqfast, RocketMQ, raise_open_files
from data import TOPIC, Dataset, discard
from groups import Plan
from live.peers import RAISED, attempted, entered, spark
from live.planning import planning
from measurement import Effort, Series, Variants, checked, interleave
from peer import Answer, Peer
from spark_groups import require_spark

#: Held to a core each; and as the kernel likes, where one worker may keep more than a core busy.
HOW = ("held", "workers")
WORKERS = (1, 2)


def cluster(plan: Plan) -> list[Series]:
    """The planning at both brokers; then the workers."""
    raise_open_files()
    found = [series for kind in (RocketMQ, Rmqfast) for series in planning(kind, plan.effort)]
    return found + [series for how in HOW for series in of_workers(how, plan)]


def of_workers(how: str, plan: Plan) -> list[Series]:
    """Both sizes with workers of a kind; the clusters of one and of two workers are up together and take turns."""
    names = {f"cluster {how} {count}": count for count in WORKERS}

    def measure() -> list[Series]:
        require_spark(plan.spark_python)
        with ExitStack() as stack:
            peers = {
                name: stack.enter_context(spark(plan.spark_python, f"{how}:{count}")) for name, count in names.items()
            }
            effort = Effort(min(3, plan.effort.repeat), plan.effort.warm_ups)
            return [series for dataset in plan.live for series in of_size(dataset, peers, effort)]

    return attempted([f"{name} {dataset.label}" for name in names for dataset in plan.live], measure)


def of_size(dataset: Dataset, peers: dict[str, Peer], effort: Effort) -> list[Series]:
    """The same read by both clusters."""
    try:
        with ExitStack() as stack:
            side = entered(stack, Rmqfast, dataset, RAISED)
            options = json.dumps({"nameServer": side.name_server, "topic": TOPIC, "pullBatchSize": 1024})
            variants: Variants = {
                f"{name} {dataset.label}": partial(whole, dataset, peer, options) for name, peer in peers.items()
            }
            return interleave(variants, effort, [side.directory / "store"])
    finally:
        discard(dataset)


def whole(dataset: Dataset, peer: Peer, options: str) -> Answer:
    """A read that has all messages and all bytes of their bodies."""
    answer = peer.ask("read", "rocketmq", options, "sum", 1)
    return checked(answer, rows=dataset.rows, bytes=dataset.body_bytes)
