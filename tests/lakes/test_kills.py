"""Streams may be killed at any moment, any number of times: a table has each message once in the end."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lakes.spark_lake import formats_of_this_spark, in_microseconds, rows_of
from tests.tables.stored_rows import append, scanned
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.newest, pytest.mark.long, pytest.mark.timeout(3600)]

ROOT = Path(__file__).parents[2]
#: Set to a number for a few kills.
KILLS = int(os.environ.get("RMQFAST_KILLS", "50"))
MESSAGES = 2000
#: Files that appear when a table's commit is there, and its batch's in the checkpoint is not.
COMMITS = {
    "delta": "messages/_delta_log/*.json",
    "iceberg": "ice/*/messages/metadata/*.metadata.json",
    "parquet": "messages/_spark_metadata/[0-9]*",
}
#: Files that appear while a batch is written.
FILES = {
    "delta": "messages/**/*.parquet",
    "iceberg": "ice/*/messages/data/**/*.parquet",
    "parquet": "messages/**/*.parquet",
}


@pytest.mark.parametrize("format_", [*formats_of_this_spark(), "parquet"])
def test_rows_are_distinct_offsets_after_kills(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    chance = random.Random(format_)
    store, directory = tmp_path / "store", tmp_path / "lake"
    directory.mkdir()
    count = 0
    moments = {"at the start": 0, "amid files": 0, "behind a table's commit": 0}
    for number in range(KILLS):
        # enough for many batches
        append(store, MESSAGES, start=count, topics=5)
        count += MESSAGES
        moment = list(moments)[number % 3]
        pattern = {"at the start": "checkpoint/offsets/[0-9]*", "amid files": FILES[format_]}.get(
            moment, COMMITS[format_]
        )
        killed = kill_when(store, directory, format_, appears_again(directory, pattern, chance.randrange(4)))
        moments[moment] += killed
    assert sum(moments.values()) == KILLS, moments
    assert start(store, directory, format_).wait() == 0
    # a table of Iceberg's catalog in a directory is one, too
    table = directory / (f"ice/{directory.name}/messages" if format_ == "iceberg" else "messages")
    rows, wanted = rows_of(spark.read.format(format_).load(str(table))), scanned(store)
    assert len(rows) == len(wanted) == count
    assert rows == in_microseconds(wanted)


def start(store: Path, directory: Path, format_: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.lakes.stream_job", str(store), str(directory), format_]
    # a killed JVM leaves copies of all jars there
    place = directory / "tmp"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    variables = {
        **os.environ,
        "SPARK_LOCAL_DIRS": str(place),
        "TMPDIR": str(place),
        "_JAVA_OPTIONS": f"-Djava.io.tmpdir={place}",
    }
    with (directory / "job.log").open("wb") as output:
        return subprocess.Popen(command, cwd=ROOT, env=variables, stdout=output, stderr=output, start_new_session=True)


def kill_when(store: Path, directory: Path, format_: str, moment: Callable[[], bool]) -> bool:
    """Kills a stream's driver with its JVM. Returns whether it ran."""
    job = start(store, directory, format_)
    until(lambda: moment() or job.poll() is not None, (directory / "job.log").read_text, patience=300)
    is_running = job.poll() is None
    if is_running:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert job.returncode in {0, -signal.SIGKILL}, (directory / "job.log").read_text()
    return is_running


def appears_again(directory: Path, pattern: str, times: int) -> Callable[[], bool]:
    """Whether more than `times` new files of a pattern have appeared since."""
    before = set(directory.glob(pattern))
    return lambda: len(set(directory.glob(pattern)) - before) > times
