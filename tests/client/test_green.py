"""Clients in a process in which gevent or eventlet has patched all: native threads do what is theirs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster
from rmqfast.threads import are_green

ROOT = Path(__file__).parents[2]
#: Sends of each kind.
COUNT = 8


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("library", ["gevent", "eventlet"])
def test_greenlets_send_and_consume_whenever_all_was_patched(library: str, when: str) -> None:
    with EmbeddedCluster() as cluster:
        # eventlet warns of itself
        program = ["-m", "tests.client.green_program", library, cluster.name_server, when]
        command = [sys.executable, "-W", "ignore", *program]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["sent"] == told["async"] == told["own"] == ["SEND_OK"] * COUNT
    assert told["seen"] == [*["async"] * COUNT, *["own"] * COUNT, *["sent"] * COUNT]
    assert told["queues"] > 0


def test_a_cluster_runs_in_a_patched_process() -> None:
    code = """
import gevent.monkey
gevent.monkey.patch_all()
import rmqfast
with rmqfast.EmbeddedCluster() as cluster, rmqfast.Producer("shop", name_server=cluster.name_server) as producer:
    print(producer.send(rmqfast.Message("orders", b"paid")).status)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=240)
    assert (done.stdout, done.returncode) == ("SEND_OK\n", 0), done.stderr


def test_elsewhere_threads_are_those_of_the_standard_library() -> None:
    assert not are_green()
