"""The columnar source on a standalone cluster: what kills, cancels, repeats and cuts tasks changes no row."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqfast import Message, open_store
from rmqfast.errors import StoreError
from rmqfast.spark import read_store
from rmqfast.spark.columnar import plain_error
from tests import golden_stores
from tests.effort import effort
from tests.golden_stores import PathOf

from .cluster import Cluster
from .cluster_jobs import COPIES, TASKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.newest, pytest.mark.timeout(900)]

MESSAGES, BODY = 10_000, 4096
HARMS = effort("RMQFAST_HARMS", 100, 500)
HARM: dict[str, Callable[[Path], None]] = {"truncate": lambda file: os.truncate(file, 40_000), "unlink": Path.unlink}
SOUND = [name for name in golden_stores.NAMES if not name.startswith("damaged")]
TOTALS = {"rows": MESSAGES, "bytes": MESSAGES * BODY}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 10,000 messages of 4 KiB."""
    path = tmp_path_factory.mktemp("stores") / "large"
    with open_store(path, mode="a") as store:
        store.append_many([Message("T", os.urandom(BODY), tags="a") for _ in range(MESSAGES)])
    return path


def run(master: str, job: str, *paths: Path) -> dict[str, Any]:
    """The answer of a driver in a process of its own."""
    command = [sys.executable, "-m", "tests.spark.cluster_jobs", master, job, *map(str, paths)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd=root)
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.fixture(scope="module")
def read(cluster: Cluster, golden_store: PathOf) -> dict[str, Any]:
    """What executors read of each store, by its path; one driver asks for all."""
    return run(cluster.master, "rows", *map(golden_store, SOUND))


@pytest.mark.parametrize("name", SOUND)
def test_executors_give_the_rows_of_every_golden_store(read: dict[str, Any], golden_store: PathOf, name: str) -> None:
    found = read[str(golden_store(name))]
    with open_store(golden_store(name)) as store:
        rows = store.scan(columns=["physical_offset", "msg_id", "tags", "body"]).to_arrow().to_pylist()
    expected = [[row["physical_offset"], row["msg_id"], row["tags"], row["body"].hex().upper()] for row in rows]
    assert found["rows"] == expected
    assert found["executors"] == 2


@pytest.mark.parametrize("job", ["killed", "cancelled", "speculative"])
def test_what_becomes_of_a_task_changes_no_row(cluster: Cluster, large: Path, job: str) -> None:
    found = run(cluster.master, job, large)
    assert {name: found[name] for name in TOTALS} == TOTALS
    assert found.get("cancelled", True)
    assert found.get("killed", True)


def test_a_limit_ends_tasks_early(cluster: Cluster, large: Path) -> None:
    assert run(cluster.master, "limited", large) == {"rows": 10, "taken": 7}


def test_thousands_of_partitions_share_no_message(cluster: Cluster, large: Path) -> None:
    """Ten thousand with RMQFAST_FULL=1, or as RMQFAST_TASKS says."""
    found = run(cluster.master, "many", large)
    assert {name: found[name] for name in TOTALS} == {name: COPIES * total for name, total in TOTALS.items()}
    assert found["partitions"] >= TASKS


def test_thousands_of_tasks_leave_no_memory_behind(large: Path) -> None:
    """Ten thousand with RMQFAST_FULL=1, or as RMQFAST_TASKS says."""
    found = run("local[2]", "memory", large)
    assert {name: found[name] for name in TOTALS} == TOTALS
    assert found["tasks"] >= 500
    grown = found["after"] - found["before"]
    assert grown < 64 << 20, f"expected less than 64 MiB more after {TASKS} tasks, got {grown >> 20}"


@pytest.mark.parametrize("harm", HARM)
def test_a_file_that_shrinks_or_goes_while_it_is_read_never_ends_the_jvm(
    spark: SparkSession, golden_store_copy: PathOf, harm: str
) -> None:
    """Five hundred times with RMQFAST_FULL=1, or as RMQFAST_HARMS says: right rows, or an error of this package."""
    path = golden_store_copy("basic-4.9.4")
    whole = len(golden_stores.expected_rows("basic-4.9.4"))
    last = max(p for p in (path / "commitlog").iterdir() if p.stat().st_size)
    before = last.read_bytes()
    outcomes = {"whole": 0, "refused": 0}

    def planned() -> DataFrame:
        return read_store(spark, path, None, engine="columnar", min_partitions=4, columns=["body", "properties"])

    seconds = min(timeit.repeat(planned().collect, number=1, repeat=5))
    for n in range(HARMS):
        frame = planned()
        # from the beginning until long after the end of a read
        harmed = threading.Timer(seconds * (n % 20) / 5, HARM[harm], (last,))
        harmed.start()
        try:
            assert len(frame.collect()) == whole
            outcomes["whole"] += 1
        except Exception as error:  # Spark's own class differs by version
            if not isinstance(plain_error(error), StoreError):
                raise
            outcomes["refused"] += 1
        harmed.join()
        last.write_bytes(before)
    assert min(outcomes.values()) > 0, outcomes
