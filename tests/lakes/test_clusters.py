"""Executors get the packages of tables, and the jar of the source, however a job is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from rmqfast.spark import jar_path
from rmqfast.spark.table_formats import package_of
from tests.lakes.spark_lake import formats_of_this_spark

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROOT = Path(__file__).parents[2]
#: The command of the PySpark that is installed here.
SUBMIT = Path(sys.executable).parent / "spark-submit"
LOCAL = ["--master", "local-cluster[1,1,1024]", "--conf", "spark.driver.host=127.0.0.1"]


def run(command: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}", "PYSPARK_PYTHON": sys.executable}
    return subprocess.run(
        [*command, str(directory)], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("way", ["python", "spark-submit"])
def test_a_cluster_writes_tables(tmp_path: Path, way: str) -> None:
    packages = ",".join(package_of(name, pyspark.__version__) for name in formats_of_this_spark())
    job = [sys.executable, "-m", "tests.lakes.cluster_job"]
    if way == "spark-submit":
        job = [str(SUBMIT), *LOCAL, "--jars", str(jar_path()), "--packages", packages, "tests/lakes/cluster_job.py"]
    ran = run(job, tmp_path)
    assert ran.returncode == 0, ran.stderr[-6000:]
    assert [line for line in ran.stdout.splitlines() if line.endswith(" 100")] == [
        f"{name} 100" for name in formats_of_this_spark()
    ]


def test_spark_submit_without_the_packages_is_told_to_add_them(tmp_path: Path) -> None:
    ran = run([str(SUBMIT), *LOCAL, "tests/lakes/cluster_job.py"], tmp_path)
    assert ran.returncode != 0
    assert f"give --packages {package_of('delta', pyspark.__version__)}" in ran.stdout
