"""All attacks, in the order of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.attack import accounts, clocks, disk, everything, filters, names
from tests.attack.figures import Figure, Scale
from tests.broker.interop.cluster import Cluster

_SMALL = ("mappedFileSizeCommitLog=16777216", "maxHashSlotNum=1000", "maxIndexNum=4000")


@dataclass(frozen=True, slots=True)
class Attack:
    """A bounded program against a cluster that was just started.

    Attributes:
        name: Its name.
        run: Does it; gives what was measured.
        properties: Of the broker's configuration.
        prepare: Is given the directory of the cluster before that starts.
        is_for_real: It makes sense on RocketMQ, too.
        is_quick: It measures more than time, and takes seconds in small.
    """

    name: str
    run: Callable[[Cluster, Scale], list[Figure]]
    properties: tuple[str, ...] = _SMALL
    prepare: Callable[[Path], object] = lambda _: None
    is_for_real: bool = True
    is_quick: bool = False


ATTACKS = (
    Attack("groups", names.new_groups),
    Attack("topics", names.new_topics),
    Attack("many-groups", names.many_groups_at_once),
    Attack("offsets", names.many_offsets, is_quick=True),
    Attack("everything", everything.all_at_once, is_for_real=False),
    Attack("queues", disk.many_queues, ("mappedFileSizeCommitLog=16777216",)),
    Attack("restart", disk.restart, ()),
    Attack(
        "accounts",
        accounts.unsigned_requests,
        accounts.PROPERTIES,
        accounts.make_accounts,
        is_for_real=False,
        is_quick=True,
    ),
    Attack("filters", filters.large_filters),
    Attack("paused", clocks.paused, is_for_real=False),
    Attack("clock", clocks.clock_set, is_for_real=False),
)
