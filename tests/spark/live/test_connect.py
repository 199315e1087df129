"""Spark Connect: a client without a JVM reads, streams and writes topics by both sources."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from tests.spark.engines import ENGINES
from tests.spark.live import topics
from tests.spark.live.connect_server import ConnectServer
from tests.spark.live.streams import each_once
from tests.spark.live.test_topic_stream import ends

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.newest,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="Spark Connect needs pyspark[connect]"),
]
PACKAGE = Path(rmqfast.__file__).parents[1]
ROOT = Path(__file__).parents[3]


def test_a_client_of_spark_connect_reads_streams_and_writes(tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=2) as cluster:
        topics.create(cluster, "orders", queues=2)
        topics.create(cluster, "written", queues=1)
        topics.fill(cluster, 400, "orders")
        found = ends(cluster.name_server)
        with ConnectServer(tmp_path) as server:
            answer = driven(server, cluster.name_server, tmp_path)
        written = ends(cluster.name_server, "written")
    wanted = sorted([*place] for place in each_once(found))
    assert list(answer) == list(ENGINES)
    for engine, seen in answer.items():
        assert seen["streamed"] == wanted, engine
        assert len(seen["read"]) == 200, engine
        assert all(place in wanted for place in seen["read"]), engine
        assert seen["refused"].startswith("UnknownTopicError: unknown topic 'order' at the name server; did you mean")
    assert sum(written.values()) == 10


def driven(server: ConnectServer, name_server: str, directory: Path) -> dict[str, dict[str, Any]]:
    """What `connect_driver` says."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(ROOT), *sys.path])}
    command = [sys.executable, "-m", "tests.spark.live.connect_driver", server.url, name_server, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=800, cwd=ROOT, env=environment)
    assert done.returncode == 0, f"{done.stderr}\n{server.told()}"
    answer: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return answer
