"""Queries of each engine that read less than the whole scan: they do not meet a loss among the messages left out.

An engine that handed over no columns or no filter would still answer right, but slowly, and nobody would see it.
"""

from __future__ import annotations

import ibis
import narwhals as nw
import polars as pl
import pytest

import rmqfast
from rmqfast.store import Scan
from tests.reference.writer import Message

from .queries import Between, Comparison, Condition, Instant, Joined, OneOf, Query
from .small_store import small_store
from .test_queries_random import ENGINES, Engine

COUNT, START = 60, 1_700_000_000_000
#: The message whose body does not decompress.
LOST = 41
AT = Instant(START + LOST, "ms")

NARROWING: dict[str, Condition] = {
    "a tag": Comparison("tags", "=", "a", is_flipped=False),
    "a tag on the right": Comparison("tags", "=", "a", is_flipped=True),
    "tags": OneOf("tags", ["a", "b"]),
    "one tag or another": Joined(
        "OR", [Comparison("tags", "=", "a", is_flipped=False), Comparison("tags", "=", "b", is_flipped=False)]
    ),
    "a queue": Comparison("queue_id", "=", 0, is_flipped=False),
    "queues": OneOf("queue_id", [0, 2]),
    "offsets before": Comparison("queue_offset", "<", LOST // 2, is_flipped=False),
    "offsets behind": Comparison("queue_offset", "<", LOST // 2, is_flipped=True),
    "offsets between": Between("queue_offset", 3, 7),
    "times before": Comparison("store_timestamp", "<", AT, is_flipped=False),
    "times behind": Comparison("store_timestamp", ">", AT, is_flipped=False),
    "a tag and more": Joined(
        "AND",
        [Comparison("tags", "=", "a", is_flipped=False), Comparison("flag", "=", 0, is_flipped=False)],
    ),
}


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Scan:
    messages = [
        Message(
            "T",
            b"no zlib stream",
            queue_id=n % 2,
            properties=(("TAGS", "lost" if n == LOST else "ab"[n % 3 == 0]),),
            sys_flag=1 if n == LOST else 0,
            store_timestamp=START + n,
        )
        for n in range(COUNT)
    ]
    store = rmqfast.open_store(small_store(tmp_path_factory.mktemp("narrowed") / "store", messages).path)
    return store.scan("T", on_damage="fail", batch_rows=10)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_query_for_all_bodies_meets_the_loss(scan: Scan, engine: Engine) -> None:
    with pytest.raises(Exception, match="expected a sound zlib stream"):
        engine.answer(engine.given(scan.dataset()), Query(["body"], None))


@pytest.mark.parametrize("condition", NARROWING.values(), ids=NARROWING)
@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_filter_narrows_the_scan(scan: Scan, engine: Engine, condition: Condition) -> None:
    assert len(engine.answer(engine.given(scan.dataset()), Query(["body"], condition))) > 0


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_columns_narrow_the_scan(scan: Scan, engine: Engine) -> None:
    condition = Comparison("tags", "<>", "none", is_flipped=False)
    assert len(engine.answer(engine.given(scan.dataset()), Query(["queue_offset"], condition))) == COUNT


def test_polars_hands_over_the_number_of_rows(scan: Scan) -> None:
    assert len(scan.lazy().select("body").head(LOST - 1).collect()) == LOST - 1
    with pytest.raises(Exception, match="expected a sound zlib stream"):
        scan.lazy().select("body").head(LOST + 1).collect()


def test_a_fragment_is_narrowed_by_the_filter_of_its_dataset(scan: Scan) -> None:
    dataset = scan.dataset()
    [fragment] = dataset.filter(dataset.field("tags") == "a").get_fragments()
    assert set(fragment.to_table(columns=["tags", "body"])["tags"].to_pylist()) == {"a"}


def test_narwhals_hands_over_what_its_engine_does(scan: Scan) -> None:
    frame = nw.from_native(scan.lazy()).filter(nw.col("tags") == "a").select("body").collect()
    assert len(frame) == len(scan.lazy().filter(pl.col("tags") == "a").select("tags").collect()) > 0


def test_ibis_hands_over_columns_and_filters(scan: Scan) -> None:
    table = ibis.memtable(scan.dataset())
    query = table.filter(table.tags == "a").select("body")
    assert ibis.duckdb.connect().to_pyarrow(query).num_rows == 2 * COUNT // 3 - 1
