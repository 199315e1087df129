"""Messages of a cluster by pulls, out of brokers' logs and out of copies; with accounts and TLS; in bounded memory."""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast import Message, Producer, errors
from rmqfast.client.instance import ClientConfig
from rmqfast.remoting import TlsOptions
from tests.broker.certificates import make_authority
from tests.client.accounts import SECRET, guarded_cluster
from tests.cluster.rows import rows_of, stored_rows
from tests.cluster.test_cluster_rows import ARGUMENTS
from tests.cluster.test_cluster_tables import Counted
from tests.proxy import Proxy
from tests.spark.live import topics
from tests.spark.live.log_server import LogServer
from tests.spark.live.topics import LiveCluster
from tests.waiting import until

pytestmark = pytest.mark.slow

NAMES = ("all", "tags of one hash", "keys and tags", "a prefix of keys", "one offset of all queues", "offsets by queue")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveCluster, LogServer]]:
    """A cluster of one broker whose log is served, and by whom."""
    directory = tmp_path_factory.mktemp("ways")
    with LogServer() as server, topics.cluster_in(directory, 1, haListenPort=str(server.port)) as cluster:
        for topic in ("orders", "others"):
            topics.create(cluster, topic)
        topics.send(cluster, 1200)
        topics.fill(cluster, 2000, "others")
        server.directory = directory
        yield LiveCluster(cluster.name_server, directory), server


@pytest.mark.parametrize("via", ["log", "auto"])
@pytest.mark.parametrize("name", NAMES)
def test_a_broker_s_log_has_the_rows_of_pulls(
    served: tuple[LiveCluster, LogServer], via: rmqfast.cluster.Via, name: str
) -> None:
    live, server = served
    server.asked.clear()
    scan = rmqfast.open_cluster(live.name_server).scan("orders", via=via, **ARGUMENTS[name])
    for _ in range(2):
        assert rows_of(scan) == stored_rows(live.directory, **ARGUMENTS[name])
    assert pickle.loads(pickle.dumps(scan)).count() == scan.count()  # noqa: S301 - written here
    assert via == "auto" or server.asked


def test_a_table_over_a_log_is_narrowed(served: tuple[LiveCluster, LogServer]) -> None:
    live, _ = served
    table = rmqfast.open_cluster(live.name_server).table("orders", via="log")
    rows = stored_rows(live.directory)
    for condition, count in [
        (table.field("tags") == "paid", sum(row["tags"] == "paid" for row in rows)),
        (table.field("queue_id") == 1, sum(row["queue_id"] == 1 for row in rows)),
        (table.field("queue_offset") >= 290, sum(row["queue_offset"] >= 290 for row in rows)),
        (table.field("store_timestamp") >= rows[700]["store_timestamp"], None),
    ]:
        found = table.count_rows(condition)
        assert found == (table.to_table().filter(condition).num_rows if count is None else count) > 0


@pytest.mark.parametrize("name", NAMES)
def test_copies_have_the_rows_of_pulls(live_cluster: LiveCluster, name: str) -> None:
    """The directory of a cluster in this process has a store for each broker, as that of a mirror has."""
    opened = rmqfast.open_cluster(live_cluster.name_server)
    scan = opened.scan("orders", via="mirror", mirror_path=live_cluster.directory, **ARGUMENTS[name])
    for _ in range(2):
        assert rows_of(scan) == stored_rows(live_cluster.directory, **ARGUMENTS[name])
    assert scan.count() == len(rows_of(scan))
    assert rows_of(scan.dataset().scan) == rows_of(scan)


def test_accounts_and_certificates_are_settings(tmp_path: Path) -> None:
    authority = make_authority(tmp_path / "certificates")
    pair = authority.server()
    config = {
        "tls.test.mode.enable": "false",
        "tls.server.mode": "enforcing",
        "tls.server.certPath": str(pair.certificate),
        "tls.server.keyPath": str(pair.key),
        "tls.client.trustCertPath": str(authority.certificate),
        "useTLS": "true",
    }
    with guarded_cluster(tmp_path, config, reader01="PUB|SUB", nobody01="DENY") as cluster:
        tls = TlsOptions(trust=authority.certificate)

        def settings(key: str = "reader01", secret: str = SECRET, tls: TlsOptions | None = tls) -> ClientConfig:
            return ClientConfig(name_server=cluster.name_server, tls=tls, access_key=key, secret_key=secret)

        with Producer("tests", config=settings()) as producer:
            for _ in range(5):
                producer.send(Message("orders", b"secret", tags="paid"))
        opened = rmqfast.open_cluster(config=settings())
        scan = opened.scan("orders", threads=2)
        assert scan.to_arrow()["body"].to_pylist() == [b"secret"] * 5
        assert pickle.loads(pickle.dumps(scan)).to_arrow().num_rows == 5  # noqa: S301 - written here
        # an HA port knows neither accounts nor TLS
        assert opened.scan("orders", via="log").to_arrow().num_rows == 5
        assert "orders" in opened.topics()
        with pytest.raises(errors.ResponseError, match="Check signature failed") as caught:
            rmqfast.open_cluster(config=settings(secret="87654321")).scan("orders")  # noqa: S106
        assert "87654321" not in str(caught.value)
        with pytest.raises(errors.ClientError, match="no name server answers"):
            rmqfast.open_cluster(config=settings(tls=None)).scan("orders")
        denied = rmqfast.open_cluster(config=settings("nobody01")).scan("orders")
        with pytest.raises(errors.ClientError, match=r"refuses: .*No default permission for group:rmqfast_scan"):
            denied.to_arrow()


MIB = 1 << 20


def test_what_nobody_takes_is_not_read_on(tmp_path: Path) -> None:
    """A thread reads 32 MiB ahead at most, and answers that are on their way."""
    counted, whole = Counted(), 80 * MIB
    with topics.cluster_in(tmp_path, 1, mappedFileSizeCommitLog=str(64 * MIB)) as embedded:
        topics.create(embedded, "orders", 8)
        # of random bytes, which a producer cannot compress
        body = random.Random(0).randbytes(MIB // 4)
        with Producer("tests", name_server=embedded.name_server) as producer:
            for _ in range(whole // len(body)):
                producer.send(Message("orders", body))
        with Proxy(embedded.brokers[0].address, lambda _: counted) as proxy:
            config = ClientConfig(name_server=embedded.name_server, translate_address=lambda _: proxy.address)
            scan = rmqfast.open_cluster(config=config).scan("orders", columns=["body"], batch_rows=1)
            batches = scan.batches()
            next(batches)
            assert MIB < settled(counted) < 56 * MIB
            # one that reads slowly gets everything
            assert sum(batch.num_rows for batch in batches) == whole // len(body) - 1
            assert counted.bytes > whole


def settled(counted: Counted) -> int:
    """The bytes that came, once no more come for half a second."""
    pause, last = threading.Event(), -1

    def is_quiet() -> bool:
        nonlocal last
        before, last = last, counted.bytes
        pause.wait(0.5)
        return before == last

    until(is_quiet)
    return counted.bytes
