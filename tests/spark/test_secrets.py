"""The secrets of an account are in no plan, no description of a table, no event log and no checkpoint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.live import topics
from tests.spark.test_tables import has_tables

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]


@has_tables
def test_secrets_are_not_shown(tmp_path: Path) -> None:
    with topics.cluster_in(tmp_path / "cluster", brokers=1) as cluster:
        for topic in ("orders", "copies"):
            topics.create(cluster, topic, queues=1)
        topics.send(cluster, 10)
        shown = tmp_path / "shown"
        shown.mkdir()
        command = [sys.executable, "-m", "tests.spark.secrets_job", cluster.name_server, str(shown)]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "rocketmq-columnar topic orders" in ran.stdout
    files = [path for path in shown.rglob("*") if path.is_file()]
    assert [path for path in files if "eventlog" in str(path)]
    texts = {"output": ran.stdout} | {str(path): path.read_bytes().decode(errors="replace") for path in files}
    # it is there, as Spark hides it
    assert any("secretKey" in text and "redacted" in text for where, text in texts.items() if "eventlog" in where)
    leaks = {where: line for where, text in texts.items() for line in text.splitlines() if "hush-" in line}
    assert not leaks
