"""One worker of a standalone cluster of Spark, and two, each of one core; rmqfast's broker serves them."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from broker.sides import Rmqfast
from data import Dataset
from groups import Plan
from live.batches import whole
from live.peers import RAISED, attempted, entered, spark
from measurement import Effort, Series, Variants, interleave
from peer import Peer
from spark_groups import require_spark

#: Held to a core each; and as the kernel likes, where one worker may keep more than a core busy.
HOW = ("held", "workers")
WORKERS = (1, 2)


def scale(plan: Plan) -> list[Series]:
    """Both sizes; the clusters of one and of two workers are up together and take turns."""
    return [series for how in HOW for series in of_workers(how, plan)]


def of_workers(how: str, plan: Plan) -> list[Series]:
    """Both sizes with workers of a kind."""
    names = {f"live {how} {count}": count for count in WORKERS}

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
    with ExitStack() as stack:
        side = entered(stack, Rmqfast, dataset, RAISED)
        request = ("topic", side.name_server, 1024)
        variants: Variants = {
            f"{name} {dataset.label}": partial(whole, dataset, peer, request) for name, peer in peers.items()
        }
        return interleave(variants, effort, [side.directory / "store"])
