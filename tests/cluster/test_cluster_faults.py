"""Scans of a cluster that loses messages, brokers or its name server; scans that are given up or interrupted."""

from __future__ import annotations

import gc
import linecache
import logging
import multiprocessing
import os
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
import pytest

import rmqfast
from rmqfast import DamageWarning, errors
from rmqfast.client.instance import ClientConfig
from rmqfast.store.scan_source import OnDamage
from tests.client.ranges.clusters import RestartableCluster
from tests.cluster.rows import rows_of
from tests.proxy import Proxy, gated
from tests.spark.live import topics
from tests.store import test_damage_heard
from tests.store.ctrl_c import check_ends_by_ctrl_c
from tests.store.test_damage_heard import DOORS
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_collections")]

COUNT = 3000
Door = Callable[[rmqfast.Scan], int]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RestartableCluster]:
    """One broker with messages in the one queue of `orders`, whose log retention may remove."""
    with RestartableCluster(tmp_path / "store", fileReservedTime="0") as started:
        started.create("orders")
        started.fill("orders", COUNT)
        yield started


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, rmqfast.Scan]]:
    """Scans by what damage does to them, of which retention has removed messages since they were planned."""
    with RestartableCluster(tmp_path_factory.mktemp("store"), fileReservedTime="0") as started:
        started.create("orders")
        started.fill("orders", COUNT)
        opened = rmqfast.open_cluster(started.name_server)
        scans = {way: opened.scan("orders", columns=["queue_offset"], on_damage=way) for way in ("warn", "fail")}
        started.expire()
        until(lambda: opened.topics()["orders"]["broker-a"][0][0] > 0)
        yield scans


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_gap_is_a_warning_at_the_line_that_reads(lossy: dict[str, rmqfast.Scan], door: Door) -> None:
    scan = lossy["warn"]
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rows = door(scan)
            gc.collect()
        assert 0 < rows < COUNT
        [warning] = caught
        assert warning.category is DamageWarning
        assert str(warning.message).startswith(
            "orders, broker broker-a, queue 0, offsets 0 to 3000: messages are lost: "
        )
        # a thread of DuckDB has no line of its own: then it is the line that made the scan
        assert warning.filename in {test_damage_heard.__file__, __file__}
        assert "scan" in linecache.getline(warning.filename, warning.lineno)


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_gap_is_an_error(lossy: dict[str, rmqfast.Scan], door: Door) -> None:
    scan = lossy["fail"]
    for _ in range(2):
        with pytest.raises(Exception, match=r'(?s)messages are lost: .*on_damage="warn"') as caught:
            door(scan)
        assert not isinstance(caught.value, Warning)
    with pytest.raises(errors.DataLossError):
        scan.to_arrow()


def test_a_count_that_reads_messages_hears_of_a_gap(lossy: dict[str, rmqfast.Scan]) -> None:
    with pytest.warns(DamageWarning, match="messages are lost"):
        assert 0 < lossy["warn"].narrow(None, ("=", "tags", ["A"])).count() < COUNT
    with pytest.raises(errors.DataLossError):
        lossy["fail"].narrow(None, ("=", "tags", ["A"])).count()


def test_a_filter_by_time_hides_no_gap(lossy: dict[str, rmqfast.Scan]) -> None:
    in_two_hours = datetime.now(UTC) + timedelta(hours=2)
    condition = (">=", "store_timestamp", [(round(in_two_hours.timestamp() * 1_000_000),)])
    with pytest.raises(errors.DataLossError, match="messages are lost"):
        lossy["fail"].narrow(None, condition).to_arrow()
    with pytest.warns(DamageWarning, match="messages are lost"):
        assert lossy["warn"].narrow(None, condition).to_arrow().num_rows == 0


def test_the_ends_are_those_of_the_call(cluster: RestartableCluster) -> None:
    scan = rmqfast.open_cluster(cluster.name_server).scan("orders", columns=["queue_offset"])
    limited, copied = scan.limit(COUNT + 10), pickle.dumps(scan)
    cluster.fill("orders", 10)
    for each in (scan, scan, limited, pickle.loads(copied), scan.dataset().scan):  # noqa: S301 - written above
        assert each.to_arrow()["queue_offset"].to_pylist() == list(range(COUNT))
        assert each.count() == COUNT


def rows_in_another_process(scan: rmqfast.Scan) -> tuple[int, list[int]]:
    return os.getpid(), scan.to_arrow()["queue_offset"].to_pylist()


def test_a_scan_is_read_in_other_processes(cluster: RestartableCluster) -> None:
    scan = rmqfast.open_cluster(cluster.name_server).scan("orders", columns=["queue_offset"], tags="A")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        [(process, offsets)] = pool.map(rows_in_another_process, [scan])
    assert process != os.getpid()
    assert offsets == scan.to_arrow()["queue_offset"].to_pylist() == list(range(0, COUNT, 2))


def test_threads_read_one_scan_at_once(cluster: RestartableCluster) -> None:
    scan = rmqfast.open_cluster(cluster.name_server).scan("orders", columns=["queue_offset"])
    with ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(lambda _: scan.limit(COUNT).to_arrow(), range(8)))
    assert {table.num_rows for table in tables} == {COUNT}


def tell(call: Callable[[], object], answers: Connection) -> None:
    try:
        call()
    except errors.ForkError as error:
        answers.send(str(error))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_may_not_go_on_with_a_reading(cluster: RestartableCluster) -> None:
    scan = rmqfast.open_cluster(cluster.name_server).scan("orders", columns=["queue_offset"], batch_rows=100)
    batches = scan.batches()
    next(batches)
    answers, end_of_fork = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=tell, args=(lambda: next(batches), end_of_fork))
    child.start()
    end_of_fork.close()
    assert f"process {os.getpid()}" in answers.recv()
    child.join()
    assert sum(batch.num_rows for batch in batches) == COUNT - 100


def threads_of_process() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - a number


@pytest.mark.parametrize("threads", [1, 3])
def test_a_scan_that_is_dropped_half_way_ends_its_threads(cluster: RestartableCluster, threads: int) -> None:
    opened = rmqfast.open_cluster(cluster.name_server)
    scan = opened.scan("orders", columns=["body"], threads=threads, batch_rows=10)
    next(scan.batches())  # whatever starts once has started
    gc.collect()
    before = threads_of_process()
    reading = iter(scan.limit(COUNT).batches())
    next(reading)
    assert threads_of_process() > before
    del reading
    gc.collect()
    until(lambda: threads_of_process() <= before)


@pytest.mark.parametrize("on_damage", ["warn", "fail"])
def test_a_broker_that_stays_away_is_an_error(cluster: RestartableCluster, on_damage: OnDamage) -> None:
    opened = rmqfast.open_cluster(cluster.name_server, retry_timeout=0.5)
    scan = opened.scan("orders", columns=["body"], batch_rows=1, on_damage=on_damage)
    tags = opened.scan("orders", tags="A", on_damage=on_damage)
    cluster.stop()
    with pytest.raises(errors.ClientError, match=r"offsets 0 to 3000: nothing came for 0.5 s from broker 127\.0\.0\.1"):
        scan.to_arrow()
    with pytest.raises(errors.ClientError, match="nothing came for"):
        tags.count()
    with pytest.raises(errors.ClientError, match="no name server answers"):
        opened.scan("orders")
    assert scan.count() == COUNT


def test_a_broker_that_comes_back_gives_the_rest(cluster: RestartableCluster, caplog: pytest.LogCaptureFixture) -> None:
    scan = rmqfast.open_cluster(cluster.name_server).scan("orders", columns=["queue_offset", "body"], batch_rows=10)
    batches = scan.batches()
    first = next(batches)
    cluster.stop()
    cluster.start()
    caplog.clear()
    rest = [batch["queue_offset"].to_pylist() for batch in batches]
    assert [*first["queue_offset"].to_pylist(), *(n for numbers in rest for n in numbers)] == list(range(COUNT))


@pytest.mark.parametrize("door", ["batches", "RecordBatchReader.read_all"])
@pytest.mark.parametrize("on_damage", ["warn", "fail"])
def test_trouble_on_the_way_is_logged(
    cluster: RestartableCluster,
    caplog: pytest.LogCaptureFixture,
    door: str,
    on_damage: OnDamage,
) -> None:
    opened = rmqfast.open_cluster(cluster.name_server)
    scan = opened.scan("orders", columns=["queue_offset"], on_damage=on_damage)
    cluster.stop()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(DOORS[door], scan)
        cluster.start()
        assert reading.result() == COUNT
        gc.collect()
    lines = [each.getMessage() for each in caplog.records if each.name == "rmqfast.client.ranges"]
    assert any("broker-a at 127.0.0.1" in line and "is lost, and tried again" in line for line in lines), lines


def test_a_planned_scan_needs_no_name_server(cluster: RestartableCluster) -> None:
    with Proxy(cluster.name_server) as name_server:
        scan = rmqfast.open_cluster(name_server.address).scan("orders", columns=["queue_offset"])
        name_server.down()
        assert len(scan.to_arrow()) == COUNT
        name_server.up()


def test_a_topic_that_is_deleted_is_a_loss(cluster: RestartableCluster) -> None:
    opened = rmqfast.open_cluster(cluster.name_server, retry_timeout=1)
    failing, warning = (opened.scan("orders", columns=["body"], on_damage=way) for way in ("fail", "warn"))
    with rmqfast.Admin(name_server=cluster.name_server) as admin:
        admin.topics.delete("orders", cluster="DefaultCluster")
    for scan in (failing, warning):
        with pytest.raises(errors.RmqError) as caught:
            scan.to_arrow()
        assert "orders" in str(caught.value)
    with pytest.raises(errors.UnknownTopicError, match="unknown topic 'orders'"):
        opened.scan("orders")
    assert opened.topics() == {}


@pytest.fixture
def silent(cluster: RestartableCluster) -> Iterator[tuple[Proxy, rmqfast.MessageCluster]]:
    """A proxy before the broker, and the cluster as seen through it."""
    assert cluster.running is not None
    with gated(cluster.running) as (gate, config):
        yield gate, rmqfast.open_cluster(config=config, retry_timeout=PATIENCE)
        gate.open()


def test_ctrl_c_ends_a_reading_while_a_broker_is_silent(silent: tuple[Proxy, rmqfast.MessageCluster]) -> None:
    gate, opened = silent
    scan = opened.scan("orders", columns=["body"])
    gate.shut()
    check_ends_by_ctrl_c(scan._latest[0].next_batch)  # noqa: SLF001 - no Python may run in it: that looks by itself
    stream = pa.RecordBatchReader.from_stream(scan)
    check_ends_by_ctrl_c(stream.read_all)


def test_ctrl_c_ends_a_plan_while_a_broker_is_silent(silent: tuple[Proxy, rmqfast.MessageCluster]) -> None:
    gate, opened = silent
    read = opened._read()  # noqa: SLF001 - no Python may run in it: that looks by itself
    gate.shut()
    check_ends_by_ctrl_c(read.plan)


def test_other_threads_run_while_a_broker_is_silent(silent: tuple[Proxy, rmqfast.MessageCluster]) -> None:
    gate, opened = silent
    scan = opened.scan("orders", columns=["body"])
    gate.shut()
    done = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(lambda: len(scan.to_arrow()))
        reading.add_done_callback(lambda _: done.set())
        planning = pool.submit(lambda: opened.scan("orders").count())
        # this thread runs on, which it could not without the GIL
        assert not done.is_set()
        gate.open()
        assert reading.result() == planning.result() == COUNT


def test_a_scan_is_dropped_while_a_broker_is_silent(silent: tuple[Proxy, rmqfast.MessageCluster]) -> None:
    gate, opened = silent
    scan = opened.scan("orders", columns=["body"], batch_rows=10)
    batches = scan.batches()
    gate.shut()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(next, batches)
        gate.open()
        assert reading.result().num_rows == 10
    gate.shut()
    before = threads_of_process()
    del batches, scan
    gc.collect()
    until(lambda: threads_of_process() < before)


def test_addresses_are_translated(silent: tuple[Proxy, rmqfast.MessageCluster]) -> None:
    gate, opened = silent
    before = gate.connections
    assert len(rows_of(opened.scan("orders", threads=2))) == COUNT
    assert gate.connections > before


def test_a_name_server_that_is_silent_is_no_endless_wait(cluster: RestartableCluster) -> None:
    with Proxy(cluster.name_server) as gate:
        gate.shut()
        config = ClientConfig(name_server=gate.address, request_timeout=0.2)
        with pytest.raises(errors.ClientError, match="no name server answers"):
            rmqfast.open_cluster(config=config).scan("orders")
        gate.open()


def test_a_topic_of_nothing_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with topics.cluster_in(tmp_path, 1) as embedded:
        topics.create(embedded, "orders")
        opened = rmqfast.open_cluster(embedded.name_server)
        scan = opened.scan("orders")
        assert (scan.count(), len(scan.to_arrow()), scan.dataset().count_rows()) == (0, 0, 0)
        assert opened.topics() == {"orders": {"broker-a": dict.fromkeys(range(4), (0, 0))}}
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
