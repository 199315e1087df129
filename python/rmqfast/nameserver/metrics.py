"""A name server's metrics: which brokers it knows, and since when it has not heard of them.

RocketMQ's name servers have none.
"""

from __future__ import annotations

from collections.abc import Callable

from rmqfast.metrics import Family, Kind, Sample, write_text
from rmqfast.nameserver.route_info import RouteInfoManager


def metrics_text(routes: RouteInfoManager, now: Callable[[], int]) -> str:
    """Returns a name server's metrics as text for Prometheus."""
    return write_text(metrics_of(routes, now()), {"node_type": "nameserver"})


def metrics_of(routes: RouteInfoManager, now: int) -> list[Family]:
    """Returns the metrics at a time in milliseconds since 1970."""
    brokers = [
        Sample((each.cluster, each.broker_name, str(each.broker_id), each.address), max(0, now - heard_at) / 1000)
        for each, heard_at in routes.heard_brokers().items()
    ]
    labels = ("cluster", "broker", "broker_id", "address")
    text = "Seconds since a broker registered; after 120 it is removed."
    return [
        Family("rmqfast_name_server_topics", Kind.GAUGE, "Topics.", (), [Sample((), len(routes.all_topics()))]),
        Family(
            "rmqfast_name_server_brokers", Kind.GAUGE, "Brokers, masters and slaves.", (), [Sample((), len(brokers))]
        ),
        Family("rmqfast_name_server_broker_silent_seconds", Kind.GAUGE, text, labels, brokers),
    ]
