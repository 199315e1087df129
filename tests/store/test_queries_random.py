"""Random queries over a scan answer as over its fully read table, in DuckDB, DataFusion, Polars and pyarrow.

2,000 of them with RMQFAST_FULL=1, or as RMQFAST_QUERIES says.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import rmqfast
from rmqfast import Admin, EmbeddedCluster, Message, Producer
from rmqfast.store import MessageStore, Scan
from tests.effort import effort
from tests.golden_stores import PathOf
from tests.reference.record import TRANSACTION_COMMIT, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from tests.reference.writer import Message as Stored
from tests.reference.writer import Options, write_store

from .queries import Query, RandomQuery, in_datafusion, in_duckdb, in_polars, in_pyarrow, rows_of
from .scanned import table_of

pytestmark = pytest.mark.slow

QUERIES = effort("RMQFAST_QUERIES", 60, 2000)
# a block stays below the time that a test may take
BLOCKS = max(10, QUERIES // 50)
LIGHT = ("%LMQ%a", "%LMQ%b")
GOLDEN = (
    "basic-4.9.4",
    "basic-5.4.0",
    "crash-4.9.4",
    "damaged-4.9.4",
    "delaytx-4.9.4",
    "delaytx-5.3.3",
    "offsets-4.9.4",
)
#: Tags that an expression would read as something else, with equal hashes, and with control characters.
TAGS = ("TagA", "Aa", "BB", "标签", "", " ", "a b", " a", "a\t", "\x03a", "*", "a|b", "a||b", "A", None)


@dataclass(frozen=True)
class Engine:
    """How an engine gets at a scan, and answers a query over it, or over a table."""

    given: Callable[[pyarrow.dataset.Dataset], Any]
    answer: Callable[[Any, Query], pa.Table]
    reads_dataset: bool = True


ENGINES = {
    "DuckDB": Engine(lambda dataset: dataset, in_duckdb),
    "DataFusion": Engine(lambda dataset: dataset, in_datafusion),
    "pyarrow": Engine(lambda dataset: dataset, in_pyarrow),
    "Polars": Engine(lambda dataset: dataset.scan.lazy(), in_polars, reads_dataset=False),
    "Polars over the dataset": Engine(pl.scan_pyarrow_dataset, in_polars),
}


def write_odd_store(path: Path) -> None:
    """Queues that begin behind 0, half messages, repeated properties, tags as in `TAGS`."""
    chance, millis = random.Random(48), 1_700_000_000_000
    messages = []
    for _ in range(300):
        millis += chance.choice([0, 0, 1, 7, 999, 1000])
        pairs = [("TAGS", tag) for tag in [chance.choice(TAGS)] if tag is not None]
        # a name that is repeated
        pairs += [("TAGS", "TagA")] * (chance.random() < 0.05)
        pairs += [("KEYS", chance.choice(["k1", "k1 k2", "", "Aa"]))] * (chance.random() < 0.6)
        pairs += [("region", chance.choice(["eu", "us", ""]))] * (chance.random() < 0.6)
        kinds = [0] * 9 + [TRANSACTION_COMMIT, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK]
        messages.append(
            Stored(
                chance.choice(["T", "Aa", "BB"]),
                chance.randbytes(chance.choice([0, 3, 40])),
                queue_id=chance.randrange(3),
                properties=tuple(pairs),
                sys_flag=chance.choice(kinds),
                flag=chance.choice([0, -1, (1 << 31) - 1, -(1 << 31)]),
                born_timestamp=millis - chance.choice([0, 5000]),
                store_timestamp=millis,
                prepared_transaction_offset=chance.choice([0, (1 << 63) - 1, -(1 << 63)]),
            )
        )
    write_store(path, messages, Options(1 << 14, 400, first_queue_offsets={("T", 0): 7, ("Aa", 1): 1 << 40}))


def write_light_store(path: Path) -> None:
    """Light message queues, which list records that carry another topic, queue and offset."""
    options = rmqfast.AppendOptions(file_size=1 << 16, queue_file_size=400, multi_dispatch=True)
    with rmqfast.open_store(path, mode="a", options=options) as store:
        for n in range(150):
            lights = {0: LIGHT[0], 1: ",".join(LIGHT)}.get(n % 3)
            properties = {} if lights is None else {"INNER_MULTI_DISPATCH": lights}
            message = Message("orders", b"%d" % n, tags=f"t{n % 4}", queue_id=n % 2, properties=properties)
            store.append(message)


def write_anew_store(path: Path) -> None:
    """A topic that was deleted and made again; the first messages are still in the log."""
    with (
        EmbeddedCluster(store_dir=path) as cluster,
        Admin(name_server=cluster.name_server) as admin,
        Producer("tests", name_server=cluster.name_server) as producer,
    ):
        for generation in range(2):
            admin.create_topic("orders", queues=2)
            for n in range(30):
                producer.send(Message("orders", f"{generation} {n}".encode(), keys=f"k{n}", tags=f"t{n % 3}"))
                producer.send(Message("other", b"x"))
            if generation == 0:
                admin.topics.delete("orders")


@pytest.fixture(scope="module")
def stores(golden_store: PathOf, tmp_path_factory: pytest.TempPathFactory) -> list[MessageStore]:
    made = tmp_path_factory.mktemp("made")
    write_odd_store(made / "odd")
    write_light_store(made / "light")
    write_anew_store(made / "anew")
    anew = next((made / "anew").rglob("commitlog")).parent
    paths = [*map(golden_store, GOLDEN), made / "odd", made / "odd", made / "light", made / "light", anew]
    return [rmqfast.open_store(path, broker_name="b" if path.name == "light" else None) for path in paths]


def some_scan(chance: random.Random, store: MessageStore) -> Scan:
    """Returns a scan of one topic, several or all, sometimes with filters of its own."""
    topics = sorted(store.topics())
    topic: Any = chance.choice([chance.choice(topics), chance.choice(topics), None, chance.sample(topics, 2)])
    by_queue: dict[int, int] = {0: 3, 1: 1000}
    choices: list[dict[str, Any]] = [
        {"tags": chance.choice(["TagA", "Aa || t1", "BB || none"])},
        {"queue_ids": chance.sample([0, 1, 2], 2)},
        {"start_offset": chance.randrange(20)},
        {"end_offset": by_queue} if isinstance(topic, str) else {"end_offset": 100},
        {"start_time": chance.choice(["2023-11-14T22:13:30", "2026-11-21"])},
        {"sql": "TAGS IS NOT NULL"},
        {"keys": ["k1", "k2"]},
        {"threads": 2},
        {"way": chance.choice(["log", "queue"])} if topic is not None else {},
        {"batch_rows": chance.choice([1, 10])},
    ]
    arguments = {} if chance.random() < 0.5 else chance.choice(choices)
    scan = store.scan(topic, **arguments)
    return scan if chance.random() < 0.9 or "threads" in arguments else scan.limit(chance.choice([0, 5, 100]))


def answer(engine: Engine, given: Any, query: Query) -> pa.Table | Exception:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return engine.answer(given, query)
        # DataFusion's errors are plain Exceptions
        except Exception as error:  # noqa: BLE001
            return error


def difference(engine: Engine, scan: Scan, table: pa.Table, query: Query) -> str | None:
    """Returns how the answers differ; an empty text if the engine cannot answer the query over the table either."""
    wanted, every = answer(engine, table, query), answer(engine, table, replace(query, limit=None))
    # an engine that stops at a limit may not come to the row that it cannot answer
    if isinstance(wanted, Exception) or isinstance(every, Exception):
        return ""
    found = answer(engine, engine.given(scan.dataset()), query)
    told = mismatch(found, wanted, every)
    if told is None or not engine.reads_dataset:
        return told
    # DataFusion cannot express each condition for a dataset; Polars negates IN with null in another way there
    plain = engine.given(pyarrow.dataset.dataset(table))
    own, every = answer(engine, plain, query), answer(engine, plain, replace(query, limit=None))
    if isinstance(own, Exception) or isinstance(every, Exception):
        return "" if isinstance(found, Exception) else told
    return "" if mismatch(found, own, every) is None else told


def mismatch(found: pa.Table | Exception, wanted: pa.Table, without_limit: pa.Table) -> str | None:
    if isinstance(found, Exception):
        return f"raises {type(found).__name__}: {found}"
    if found.schema.names != wanted.schema.names or found.schema.types != wanted.schema.types:
        return f"has {found.schema}, expected {wanted.schema}"
    # an engine may return any rows up to the limit
    if len(found) == len(wanted) and not Counter(rows_of(found)) - Counter(rows_of(without_limit)):
        return None
    return f"has {len(found)} rows, expected {len(wanted)}"


@pytest.mark.parametrize("block", range(BLOCKS))
def test_queries_answer_as_over_the_whole_table(stores: list[MessageStore], block: int) -> None:
    differences, answered = [], Counter[str]()
    for number in range(block, QUERIES, BLOCKS):
        chance = random.Random(number)
        scan = some_scan(chance, chance.choice(stores))
        table = table_of(scan)
        query = RandomQuery(chance, table).query()
        for name, engine in ENGINES.items():
            told = difference(engine, scan, table, query)
            answered[name] += told != ""
            if told:
                where = f"{number}: {name} over {scan.request} of {len(table)} rows"
                differences.append(f"{where} {told}: {query.sql('duckdb')}")
    assert not differences, "\n\n".join(differences)
    asked = len(range(block, QUERIES, BLOCKS))
    # most queries are within the means of every engine
    assert min(answered[name] for name in ENGINES) >= asked * 0.5, answered
