"""Each recipe runs as its page shows it, in an environment with the tools of its readers."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import rmqfast
from rmqfast.cli.demo import make_store
from tests.examples.documents import with_readers

from .environment import ROOT, lay_out, run

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
PLACE = ["queue_id", "queue_offset"]


@pytest.fixture
def readers(tmp_path: Path) -> dict[str, str]:
    """Replacements for the paths of the pages: a store with messages of the last 24 hours."""
    make_store(tmp_path / "rocketmq", 1)
    return {"/data/rocketmq/store": f"{tmp_path}/rocketmq", "/data/": f"{tmp_path}/"}


def places(store: str, **selected: Any) -> list[tuple[int, int]]:
    """Queue and offset of the messages of the store."""
    with rmqfast.open_store(store) as opened:
        rows = opened.scan("orders", columns=PLACE, **selected).to_arrow().to_pylist()
    return sorted((row["queue_id"], row["queue_offset"]) for row in rows)


def written_places(files: list[Path]) -> list[tuple[int, int]]:
    """The same of Parquet files."""
    rows = [row for file in files for row in pq.ParquetFile(file).read(columns=PLACE).to_pylist()]
    return sorted((row["queue_id"], row["queue_offset"]) for row in rows)


def test_the_dag_writes_each_message_once_and_goes_on_where_it_stopped(tmp_path: Path, readers: dict[str, str]) -> None:
    lay_out("airflow.md", tmp_path, readers)
    store, lake, home = readers["/data/rocketmq/store"], tmp_path / "lake/orders", str(tmp_path / "airflow")

    def airflow(*arguments: str) -> None:
        variables = {"AIRFLOW_HOME": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
        run("airflow", *arguments, directory=tmp_path, AIRFLOW__CORE__DAGS_FOLDER=str(tmp_path / "dags"), **variables)

    airflow("db", "migrate")
    airflow("dags", "test", "orders_to_parquet", "2026-11-26")
    assert written_places(list(lake.rglob("*.parquet"))) == places(store)
    first = len(list(lake.rglob("*.parquet")))
    with rmqfast.open_store(store, mode="a") as writable:
        for number in range(3):
            writable.append(rmqfast.Message("orders", b"%d" % number, tags="paid"))
    airflow("dags", "test", "orders_to_parquet", "2026-11-27")
    assert len(list(lake.rglob("*.parquet"))) == first + 1
    assert written_places(list(lake.rglob("*.parquet"))) == places(store)
    airflow("dags", "test", "orders_to_parquet", "2026-11-28")
    assert len(list(lake.rglob("*.parquet"))) == first + 1


def test_a_partition_of_the_asset_has_the_messages_of_its_day(tmp_path: Path, readers: dict[str, str]) -> None:
    lay_out("dagster.md", tmp_path, readers)
    store, lake = readers["/data/rocketmq/store"], tmp_path / "lake/orders"
    with rmqfast.open_store(store) as opened:
        first = opened.info().first_store_timestamp
    assert first is not None
    day = datetime.fromtimestamp(first / 1000, UTC).date().isoformat()
    for _ in range(2):
        materialize = ("dagster", "asset", "materialize", "-f", "orders.py", "--select", "orders", "--partition", day)
        run(*materialize, directory=tmp_path)
    (file,) = lake.rglob("*.parquet")
    assert file.parent.name == f"day={day}"
    expected = places(store, start_time=f"{day}T00:00:00Z", end_time=f"{day}T23:59:59.999Z")
    assert written_places([file]) == expected
    assert expected
    assert not list(lake.rglob("*.partial"))


def test_the_models_have_the_messages_of_the_files_and_of_the_store(tmp_path: Path, readers: dict[str, str]) -> None:
    lay_out("dbt.md", tmp_path, readers)
    store = readers["/data/rocketmq/store"]
    (ingest,) = re.findall(
        r"^rmqfast (ingest .*)$", (ROOT / "docs/recipes/dbt.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    run("rmqfast", *with_readers(ingest, readers).split(), directory=tmp_path)
    run("dbt", "build", directory=tmp_path, DBT_PROFILES_DIR=os.fspath(tmp_path))
    with duckdb.connect(tmp_path / "shop.duckdb", read_only=True) as database:
        ((counted, tags),) = database.sql("select sum(messages), count(distinct tags) from orders_by_tag").fetchall()
        now = database.sql("select queue_id, queue_offset from orders_now order by all").fetchall()
    expected = places(store)
    assert now == expected
    assert counted == len(expected)
    assert tags > 1
