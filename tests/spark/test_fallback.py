"""A session without the jar, and one whose jar does not fit the machine: the Python path reads, the log says why."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rmqfast.spark import jar_path
from tests.golden_stores import PathOf

from .conftest import SHORT_LIVED

pytestmark = [pytest.mark.spark, pytest.mark.newest, pytest.mark.long]

SESSION = """
import logging, sys
from pyspark.sql import SparkSession
from rmqfast.spark import read_store

path, java_options, bare = sys.argv[1:]
logging.basicConfig(format="%(name)s %(levelname)s %(message)s", stream=sys.stdout)
logging.getLogger("rmqfast.spark").setLevel("INFO")
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
spark = builder.config("spark.driver.extraJavaOptions", java_options).getOrCreate()
for jar in (None, bare):
    if jar is not None:
        spark.sql(f"ADD JAR '{jar}'")
    for engine in ("auto", "columnar"):
        print(engine, read_store(spark, path, "fx_q1", columns=["tags"], engine=engine).count())
spark.stop()
"""


def test_without_the_jar_or_a_library_in_it_the_python_path_reads_and_the_log_says_why(
    golden_store: PathOf, tmp_path: Path
) -> None:
    """Without the jar only who asked for columns is warned; a jar that does not fit the machine is always worth it."""
    jar = jar_path()
    assert jar is not None
    bare = tmp_path / "bare.jar"
    with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(bare, "w") as archive:
        for name in whole.namelist():
            if not name.endswith(".so"):
                archive.writestr(name, whole.read(name))
    command = [sys.executable, "-c", SESSION, str(golden_store("basic-4.9.4")), SHORT_LIVED, str(bare)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    said = [line for line in output.splitlines() if line.startswith(("rmqfast.spark ", "auto ", "columnar "))]
    assert said[1::2] == ["auto 1259", "columnar 1259"] * 2
    without_jar, without_jar_asked, *without_library = said[::2]
    assert without_jar.startswith("rmqfast.spark INFO engine arrow: no data source rocketmq-columnar in this session")
    assert without_jar_asked.startswith("rmqfast.spark WARNING engine arrow, as rocketmq-columnar cannot be used here")
    for line in without_library:
        assert line.startswith("rmqfast.spark WARNING engine arrow")
        assert "rocketmq-columnar has no library for Linux on" in line
