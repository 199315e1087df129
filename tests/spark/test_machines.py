"""Spark on several machines: executors that come and go, that have no Python, and that lie beside a store."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast import Message
from tests.spark.bare_root import skip_without_roots, start_bare_worker
from tests.spark.cluster import SHARED, Cluster
from tests.spark.machines_job import STORE

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.newest, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
MESSAGES, BODY = 4_000, 1_000
TOTALS = {"rows": MESSAGES, "bytes": MESSAGES * BODY}


def run(master: str, job: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.spark.machines_job", master, job, str(directory), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd=ROOT)


def answer_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr[-6000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with a store."""
    with rmqfast.open_store(tmp_path / "shared" / STORE, mode="a") as store:
        store.append_many([Message("T", b"x" * BODY, tags="a")] * MESSAGES)
    return tmp_path / "shared"


def test_executors_come_and_go(directory: Path) -> None:
    answer = answer_of(run("local-cluster[3,1,1024]", "elastic", directory))
    assert answer["first"] == answer["second"] == TOTALS
    assert answer["streamed"] == [MESSAGES, MESSAGES + 100]
    first, most = answer["executors"]
    assert first == 0
    assert most > 1


def test_executors_need_no_python_but_a_temporary_directory_for_libraries(directory: Path, tmp_path: Path) -> None:
    skip_without_roots()
    with rmqfast.EmbeddedCluster() as cluster, Cluster(tmp_path, workers=0) as spark:
        start_bare_worker(spark, tmp_path, "127.0.0.3", [directory])
        with rmqfast.Admin(name_server=cluster.name_server) as admin:
            admin.create_topic("copied", queues=2)
        told = answer_of(run(spark.master, "loaded", directory))
        # as Spark's own libraries need it, too
        temporary = "spark.executor.extraJavaOptions=-Djava.io.tmpdir=/work"
        answer = answer_of(run(spark.master, "without_python", directory, temporary, cluster.name_server))
    assert "librmqfast_jvm.so from /tmp: java.lang.UnsatisfiedLinkError" in told["error"]
    assert "give the JVM a directory that allows execution: -Djava.io.tmpdir=DIR" in told["error"]
    assert [answer[name] for name in ("read", "written", "streamed", "copied")] == [TOTALS] * 4
    assert "Cannot run program" in answer["python"]


def test_a_store_is_read_on_its_host(directory: Path, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    log = ["spark.eventLog.enabled=true", f"spark.eventLog.dir={events.as_uri()}", "spark.eventLog.compress=false"]
    settings = [*log, "spark.locality.wait=60s", *(f"{name}={value}" for name, value in SHARED.items())]
    with Cluster(tmp_path) as spark:
        answer = answer_of(run(spark.master, "local", directory, *settings, "127.0.0.2"))
    assert answer["read"] == TOTALS
    assert answer["partitions"] > 8
    # with the task that adds the counts of all
    assert tasks(events) == {("127.0.0.2", "NODE_LOCAL"): answer["partitions"] + 1}


def tasks(events: Path) -> Counter[tuple[str, str]]:
    """How many tasks have run on which host, and why there."""
    lines = [line for path in events.rglob("events_*") for line in path.read_text(encoding="utf-8").splitlines()]
    ended = map(json.loads, lines)
    infos = [event["Task Info"] for event in ended if event["Event"] == "SparkListenerTaskEnd"]
    return Counter((info["Host"], info["Locality"]) for info in infos)
