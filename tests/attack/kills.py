"""A broker that is killed again and again, under load."""

from __future__ import annotations

from tests.attack.figures import Figure, Scale
from tests.broker.interop.cluster import Cluster
from tests.broker.test_server_kill import lost_by_kills


def kills(cluster: Cluster, scale: Scale) -> list[Figure]:
    """Kills servers of their own while clients send, pull, commit and make topics."""
    figures = []
    for flush in ("SYNC_FLUSH", "ASYNC_FLUSH"):
        lost = lost_by_kills(cluster.directory.with_name(flush), scale.kills, {"flushDiskType": flush})
        what = f"{scale.kills} kills -9 under load, {flush}: acknowledged and lost"
        figures.append(Figure(what, len(lost), "", 0, is_time=False))
    return figures
