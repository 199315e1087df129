"""Another process cuts off, removes and zeroes files of a broker, under load."""

from __future__ import annotations

from tests.attack.figures import Figure, Scale
from tests.broker.harmed_files import FAULTS, Outcome, harm
from tests.broker.interop.cluster import Cluster


def files(cluster: Cluster, scale: Scale) -> list[Figure]:
    """Does each to servers of their own, which are started again on what is left."""
    figures = []
    for fault in FAULTS:
        outcomes = [_harm(cluster, fault, seed) for seed in range(scale.harms)]

        def figure(what: str, count: int, fault: str = fault) -> Figure:
            return Figure(f"{scale.harms} files {fault} under load: {what}", count, "", 0, is_time=False)

        figures += [
            figure("crashes", sum(len(outcome.crashes) for outcome in outcomes)),
            figure("acknowledged after it and lost", sum(len(outcome.lost) for outcome in outcomes)),
            figure("pulls that miss messages in silence", sum(len(outcome.silent) for outcome in outcomes)),
            figure("answers and logs that do not say why", sum(len(outcome.untold) for outcome in outcomes)),
        ]
    return figures


def _harm(cluster: Cluster, fault: str, seed: int) -> Outcome:
    flush = ("ASYNC_FLUSH", "SYNC_FLUSH")[seed % 2]
    directory = cluster.directory.with_name(f"{fault} {seed}".replace(" ", "-"))
    return harm(directory, fault, seed, {"flushDiskType": flush})
