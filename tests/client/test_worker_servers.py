"""Clients in the workers of gunicorn and Celery, which fork, or have greenlets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
COUNT = 20
ASK = """
import json, sys
from tests.client.worker_app import send
results = [send.delay(str(number)) for number in range(int(sys.argv[1]))]
print(json.dumps([result.get(timeout=120) for result in results]))
"""


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What a worker finds: a cluster, and Celery's folders."""
    for name in ("queue", "control", "results"):
        (tmp_path / name).mkdir()
    with EmbeddedCluster() as cluster:
        yield os.environ | {"NAMESRV_ADDR": cluster.name_server, "CELERY_ROOT": str(tmp_path)}


@contextmanager
def program(*arguments: str, environment: dict[str, str], log: Path) -> Iterator[None]:
    """A server while the block runs; it has to end by itself when it is told to."""
    with log.open("w") as output:
        command = [sys.executable, "-m", *arguments]
        running = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
        try:
            yield
            running.terminate()
            assert running.wait(PATIENCE) == 0, log.read_text()
        finally:
            running.kill()
            running.wait()


def answer(address: str, number: int) -> list[str]:
    with urllib.request.urlopen(f"http://{address}/{number}", timeout=PATIENCE) as response:
        return str(response.read().decode()).split()


@pytest.mark.parametrize("kind", ["sync", "gthread", "gevent"])
def test_workers_of_gunicorn_send(kind: str, environment: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = ["-k", kind, "-w", "2", "-b", "127.0.0.1:0", "--log-level", "info"]
    with program("gunicorn", *options, "tests.client.worker_app:application", environment=environment, log=log):
        until(lambda: "Listening at: http://" in log.read_text(), log.read_text)
        address = log.read_text().partition("Listening at: http://")[2].split()[0]
        with ThreadPoolExecutor(8) as threads:
            ends = list(threads.map(lambda number: answer(address, number), range(COUNT)))
    assert {tuple(end[:2]) for end in ends} == {("SEND_OK", "SEND_OK")}
    assert len(ends) == COUNT


@pytest.mark.parametrize("pool", ["prefork", "gevent", "eventlet"])
def test_workers_of_celery_send(pool: str, environment: dict[str, str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = ["-A", "tests.client.worker_app", "worker", "-P", pool, "-c", "2", "-l", "WARNING"]
    with program("celery", *options, environment=environment, log=log):
        command = [sys.executable, "-c", ASK, str(COUNT)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + log.read_text()
    ends = json.loads(done.stdout)
    assert [end[:2] for end in ends] == [["SEND_OK", "SEND_OK"]] * COUNT
