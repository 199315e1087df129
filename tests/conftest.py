"""Fixtures that all tests share."""

from __future__ import annotations

import gc
import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from rmqfast.remoting.rate_limit import LogLimit

from . import golden_stores
from .golden_stores import PathOf
from .patient_clients import make_patient

if TYPE_CHECKING:
    from .broker.interop.cluster import Cluster
    from .broker.interop.mqadmin import Admin as MqAdmin
    from .spark.live.topics import LiveCluster

# how long an example takes says more about the machine than about the code
settings.register_profile("store", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("store")

make_patient()

# what a shell starts in its background is deaf to interrupts, and so would be all that tests start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of modules that start clusters as slow."""
    for item in items:
        if hasattr(getattr(item, "module", None), "EmbeddedCluster"):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Exempts the collected tests from garbage collection, which takes a quarter of a second with them."""
    exempt_from_collection()


@pytest.fixture(scope="module")
def quick_collections() -> None:
    """Lets a module collect garbage often: what the tests before it left is exempt."""
    exempt_from_collection()


def exempt_from_collection() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fresh_log_limits() -> None:
    """Lets no test go without a line because others before it caused the same."""
    loggers = [one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger)]
    for logger in loggers:
        for limit in [one for one in logger.filters if isinstance(one, LogLimit)]:
            logger.removeFilter(limit)
            logger.addFilter(LogLimit())


@pytest.fixture(scope="session")
def golden_store(tmp_path_factory: pytest.TempPathFactory) -> PathOf:
    """The path of a golden store by name, unpacked once per session: for readers only, never write there."""
    unpacked: dict[str, Path] = {}

    def path_of(name: str) -> Path:
        if name not in unpacked:
            unpacked[name] = golden_stores.unpack(name, tmp_path_factory.mktemp(name))
        return unpacked[name]

    return path_of


@pytest.fixture
def golden_store_copy(tmp_path: Path) -> PathOf:
    """The path of a golden store by name, unpacked for this one test, which may write to it."""
    return lambda name: golden_stores.unpack(name, tmp_path / name)


@pytest.fixture(scope="module", params=["ours", "4.9.4", "5.3.3", "5.5.0"])
def each_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """rmqfast's cluster, then RocketMQ's of each version. A module may set `BROKER_PROPERTIES`."""
    from .broker.interop.cluster import SCENARIO, cluster_of

    properties = getattr(request.module, "BROKER_PROPERTIES", SCENARIO)
    with cluster_of(request.param, tmp_path_factory.mktemp("cluster"), properties) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def mqadmin(each_cluster: Cluster) -> Iterator[MqAdmin]:
    """mqadmin of the cluster's version, at its name server."""
    from .broker.interop.cluster import version_of
    from .broker.interop.mqadmin import Admin as MqAdmin
    from .interop.rocketmq import running

    log = each_cluster.directory / "mqadmin.log"
    with running(version_of(each_cluster), "Admin", "--stdin", log=log) as process:
        yield MqAdmin(process, each_cluster.name_server)


@pytest.fixture(scope="session")
def live_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    """A cluster of two brokers in this process with a topic `orders`, which no test writes to."""
    from .spark.live import topics

    with topics.live_cluster(tmp_path_factory.mktemp("live")) as cluster:
        yield cluster
