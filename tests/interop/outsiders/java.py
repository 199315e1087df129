"""RocketMQ's Java clients, a release each, and its tool mqadmin."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.broker.interop import masks, mqadmin, scenarios
from tests.broker.interop.cluster import Cluster, second_broker
from tests.interop.rocketmq import build

from .outsider import NotInstallableError, Outsider, Rows

VERSIONS = ("4.9.4", "5.3.3", "5.5.0")


def install(version: str) -> None:
    """The classes of a release and the programs of this directory, compiled against them."""
    try:
        build(version)
    except RuntimeError as error:
        raise NotInstallableError(str(error)) from error


def play(version: str, cluster: Cluster) -> Rows:
    """The scenarios of the class `Scenario`."""
    return scenarios.play(cluster, version)


def play_with_two(version: str, cluster: Cluster) -> Rows:
    """The scenarios of the class `TwoBrokerScenarios`, with a second broker beside the one of the cluster."""
    with second_broker(cluster, cluster.properties) as second:
        return scenarios.play(cluster, version, second=second)


def ask(cluster: Cluster) -> Rows:
    """Each command of mqadmin, with what it prints."""
    rows: Rows = {}
    for line, text in mqadmin.ask_all(cluster):
        rows.setdefault(line, []).append(text)
    return rows


def printed(command: str, texts: Any) -> Any:
    """The masked output of a command."""
    return [masks.comparable(command, text)[1] for text in texts]


JAVA = tuple(
    Outsider(
        f"java-{version}",
        version,
        "Java client: all kinds of producers and consumers, groups, transactions, request and"
        " reply, and the administration that a dashboard and an exporter do",
        partial(install, version),
        partial(play, version),
    )
    for version in VERSIONS
)
TWO_BROKERS = tuple(
    Outsider(
        f"java-{version}-two-brokers",
        version,
        "Java client and two brokers: what goes where, shared queues, locks, retries, transactions, look-ups, resets,"
        " a broker that may not be written to",
        partial(install, version),
        partial(play_with_two, version),
    )
    for version in VERSIONS
)
MQADMIN = Outsider(
    "mqadmin",
    mqadmin.VERSION,
    "mqadmin: its commands, beside clients that live",
    partial(install, mqadmin.VERSION),
    ask,
    printed,
)
