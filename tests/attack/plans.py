"""A broker whose numbers would have Spark's driver plan without an end: it is the client that is attacked."""

from __future__ import annotations

import resource
import subprocess
import sys

from rmqfast._native import TopicRead
from rmqfast.errors import RmqError
from rmqfast.store import COLUMNS
from tests.attack.figures import Figure, Scale, milliseconds
from tests.broker.interop.cluster import Cluster
from tests.spark.live.hostile_broker import hostile_broker

_MOST_OFFSETS = (2**63 - 1) // 20
#: Members of a queue in the statistics of a topic.
_STATS = (
    f'"minOffset":0,"maxOffset":{2**63 - 1}',
    f'"minOffset":{-(2**63)},"maxOffset":{2**63 - 1}',
    f'"minOffset":0,"maxOffset":{_MOST_OFFSETS}',
    f'"minOffset":0,"maxOffset":{2**80}',
    '"minOffset":9,"maxOffset":3',
)
_MANY = [
    {"brokerName": f"b{number}", "perm": 6, "readQueueNums": 65_536, "writeQueueNums": 65_536}
    for number in range(5_000)
]


def impossible_offsets(_: Cluster, __: Scale) -> list[Figure]:
    """Plans of topics with such numbers, in a process of their own: how many there are, and what they cost."""
    planned, mebibytes = 0, 0.0

    def plan() -> None:
        nonlocal planned, mebibytes
        told = subprocess.run([sys.executable, "-m", __name__], check=True, capture_output=True, text=True).stdout
        count, used = told.split()
        planned, mebibytes = int(count), float(used)

    seconds = milliseconds(plan) / 1000
    what = f"{len(_STATS) + 1} answers of a broker or a name server with impossible numbers"
    return [
        Figure(f"{what}: plans that a driver made of them", planned, "", 0, is_time=False),
        Figure(f"{what}: memory of the driver", mebibytes, "MiB", 200, is_time=False),
        Figure(f"{what}: in all", seconds, "s", 10),
    ]


def _plan_all() -> None:
    before, planned = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
    for stats in _STATS:
        with hostile_broker(stats) as address:
            planned += _is_planned(address)
    with hostile_broker(_STATS[0], _MANY) as address:
        planned += _is_planned(address)
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    sys.stdout.write(f"{planned} {used}\n")


def _is_planned(address: str) -> bool:
    try:
        TopicRead("topic batch", {"nameServer": address, "topic": "orders"}, COLUMNS).plan()
    except RmqError:
        return False
    return True


if __name__ == "__main__":
    _plan_all()
