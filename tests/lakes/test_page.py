"""The page on Delta and Iceberg tables does and prints what it says, block by block, in an empty directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.documents import ROOT, check_tutorial

PAGE = "how-to/spark-tables.md"
PATIENCE = 900
#: What a reader's machine has, and this one need not: a page of Spark's, thousands of tasks to list files.
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.newest
@pytest.mark.timeout(PATIENCE + 60)
def test_the_page_does_and_prints_what_it_says(tmp_path: Path) -> None:
    """In a process of its own: the page starts its session, and ends it."""
    settings = " ".join(f"--conf {name}={value}" for name, value in SETTINGS.items())
    arguments = f"{settings} --driver-java-options '{JAVA}' pyspark-shell"
    command = [sys.executable, "-m", "tests.lakes.test_page", str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": arguments},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-8000:]


if __name__ == "__main__":
    check_tutorial(PAGE, Path(sys.argv[1]), seconds=PATIENCE)
