"""Topics of a cluster as tables of SQL engines and data frames, whose filters reach the broker."""

from __future__ import annotations

import importlib.util
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import rmqfast
from rmqfast.client.instance import ClientConfig
from rmqfast.store.dataset import ScanDataset
from tests.proxy import Passage, Proxy, Stream
from tests.spark.live import topics

pytestmark = pytest.mark.slow

COUNT, SIZE = 2000, 1000
HAS_DATAFUSION = importlib.util.find_spec("datafusion") is not None


class Counted(Passage):
    """Counts the bytes that come from a broker."""

    def __init__(self) -> None:
        self.bytes = 0

    def answers(self, stream: Stream) -> Stream:
        for piece in stream:
            self.bytes += len(piece)
            yield piece


@dataclass(frozen=True)
class Watched:
    """A cluster behind a proxy that counts what its broker sends."""

    cluster: rmqfast.MessageCluster
    counted: Counted

    def bytes_of(self, read: Callable[[], object]) -> int:
        """What the broker sends for a read."""
        before = self.counted.bytes
        read()
        return self.counted.bytes - before


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """`orders` has four queues; each message has one of two tags."""
    counted = Counted()
    with topics.cluster_in(tmp_path_factory.mktemp("tables"), 1) as embedded:
        topics.create(embedded, "orders")
        topics.fill(embedded, COUNT, "orders", bytes(SIZE))
        with Proxy(embedded.brokers[0].address, lambda _: counted) as proxy:
            config = ClientConfig(name_server=embedded.name_server, translate_address=lambda _: proxy.address)
            yield Watched(rmqfast.open_cluster(config=config), counted)


@pytest.fixture(scope="module")
def table(watched: Watched) -> ScanDataset:
    return watched.cluster.table("orders")


def counting(condition: str) -> str:
    return f"select count(*) as n from orders where {condition}"  # noqa: S608 - a constant of this file


def by_duckdb(table: ScanDataset, condition: str) -> int:
    connection = duckdb.connect().register("orders", table)
    [count] = connection.execute(counting(condition)).fetchone() or [0]
    return int(count)


def by_datafusion(table: ScanDataset, condition: str) -> int:
    import datafusion

    context = datafusion.SessionContext()
    context.register_dataset("orders", table)
    [[count]] = context.sql(counting(condition)).to_pydict().values()
    return int(count)


def by_polars(table: ScanDataset, condition: str) -> int:
    frame = pl.SQLContext(orders=table.scan.lazy())
    found = frame.execute(counting(condition), eager=True)
    return int(found["n"][0])


def by_pyarrow(table: ScanDataset, condition: str) -> int:
    field, _, value = condition.partition(" ")
    operator, _, constant = value.partition(" ")
    column, scalar = pyarrow.dataset.field(field), constant.strip("'") if "'" in constant else int(constant)
    filters: dict[str, Any] = {"=": column == scalar, "<": column < scalar, ">=": column >= scalar}
    return int(table.count_rows(filters[operator]))


ENGINES: dict[str, Callable[[ScanDataset, str], int]] = {
    "duckdb": by_duckdb,
    "polars": by_polars,
    "pyarrow": by_pyarrow,
    **({"datafusion": by_datafusion} if HAS_DATAFUSION else {}),
}
#: Conditions, and what part of all bytes a broker sends for them at most. Pulls with tags overlap.
CONDITIONS = {"tags = 'A'": 0.8, "queue_offset < 25": 0.2, "queue_id = 2": 0.4}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize(("condition", "share"), CONDITIONS.items(), ids=CONDITIONS)
def test_a_filter_reaches_the_broker(
    watched: Watched, table: ScanDataset, engine: Callable[[ScanDataset, str], int], condition: str, share: float
) -> None:
    everything: list[pa.Table] = []
    whole = watched.bytes_of(lambda: everything.append(table.to_table(columns=["tags", "queue_id", "queue_offset"])))
    count = by_pyarrow(pyarrow.dataset.dataset(everything), condition)
    assert 0 < count < COUNT
    found: list[int] = []
    assert watched.bytes_of(lambda: found.append(engine(table, condition))) < share * whole
    assert found == [count]


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_filter_that_no_broker_knows_is_exact_all_the_same(
    table: ScanDataset, engine: Callable[[ScanDataset, str], int]
) -> None:
    assert engine(table, "flag = 0") == COUNT
    assert engine(table, "flag >= 1") == 0


def test_a_table_has_the_rows_of_the_scan(watched: Watched, table: ScanDataset) -> None:
    scan = watched.cluster.scan("orders")
    everything = scan.to_arrow().sort_by([("queue_id", "ascending"), ("queue_offset", "ascending")])
    connection = duckdb.connect().register("orders", table)
    found = connection.sql("select * exclude properties from orders order by queue_id, queue_offset").to_arrow_table()
    assert found.to_pylist() == everything.drop_columns(["properties"]).to_pylist()
    frame = scan.lazy().select("queue_id", "queue_offset", "body").sort("queue_id", "queue_offset").collect()
    assert frame.to_dicts() == everything.select(["queue_id", "queue_offset", "body"]).to_pylist()


def test_tables_are_read_again_and_joined_with_themselves(table: ScanDataset) -> None:
    connection = duckdb.connect().register("orders", table)
    twice = "select count(*) from orders a join orders b using (queue_id, queue_offset) where a.tags = 'B'"
    for _ in range(2):
        assert connection.execute(twice).fetchone() == (COUNT // 2,)


def test_pieces_have_each_message_once(watched: Watched) -> None:
    dataset = watched.cluster.scan("orders", columns=["queue_id", "queue_offset"]).dataset()
    rows = [row for fragment in dataset.get_fragments() for row in fragment.to_table().to_pylist()]
    assert len({tuple(row.values()) for row in rows}) == len(rows) == COUNT


def test_the_first_rows_need_not_the_rest(watched: Watched, table: ScanDataset) -> None:
    assert table.head(3).num_rows == 3
    assert table.scan.lazy().head(3).collect().height == 3
    # closed early, as a query with a limit does
    stream = pa.RecordBatchReader.from_stream(watched.cluster.scan("orders", columns=["body"], batch_rows=10))
    assert stream.read_next_batch().num_rows == 10
    stream.close()


def test_only_what_a_table_asks_for_is_made(table: ScanDataset) -> None:
    assert table.to_table(columns=["tags"]).schema.names == ["tags"]
    assert table.count_rows() == COUNT


def test_a_table_without_a_function_is_pickled(tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path, 1) as embedded:
        topics.create(embedded, "orders")
        topics.fill(embedded, 100, "orders")
        table = rmqfast.open_cluster(embedded.name_server).table("orders", columns=["tags"])
        copied = pickle.loads(pickle.dumps(table.filter(table.field("tags") == "A")))  # noqa: S301 - written here
        assert copied.to_table().to_pydict() == {"tags": ["A"] * 50}


HOUR = 3_600_000


def test_a_filter_by_time_leaves_out_what_lies_before_and_behind(watched: Watched, table: ScanDataset) -> None:
    """A clock may have been set back by an hour, as in scans of stores."""
    times = table.to_table(columns=["store_timestamp"])["store_timestamp"]
    [first, last] = [int(pa.compute.cast(edge(times), pa.int64()).as_py()) for edge in (pa.compute.min, pa.compute.max)]
    field, kind = pyarrow.dataset.field("store_timestamp"), table.schema.field("store_timestamp").type

    def at(milliseconds: int) -> Any:
        return pa.scalar(milliseconds, kind)

    for condition in (field > at(last + 2 * HOUR), field < at(first - 2 * HOUR)):
        counted = partial(table.count_rows, condition)
        assert watched.bytes_of(counted) < 50_000
        assert counted() == 0
    assert table.count_rows((field >= at(first)) & (field <= at(last))) == COUNT
    assert table.count_rows(field > at(last)) == 0


def test_threads_query_one_table_at_once(table: ScanDataset) -> None:
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(by_duckdb(table, "tags = 'A'"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [COUNT // 2] * 4
