"""The classes of the jar: compiled against the newest Spark, fit for the oldest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.real]
ROOT = Path(__file__).parents[2]
#: They implement interfaces of Spark 4.1, or need collections of Scala 2.13: nobody loads them before.
NEWER = ("RealTimeReader", "RealTimeStream", "RustRowsExec", "RustRowsRule")


def jars(environment: str) -> Path:
    (path,) = (ROOT / environment).glob("lib/python3.*/site-packages/pyspark/jars")
    return path


def test_the_oldest_spark_gives_the_same_classes(tmp_path: Path) -> None:
    newest, oldest = tmp_path / "newest", tmp_path / "oldest"
    command: list[str | Path] = [sys.executable, ROOT / "release/jar.py", "classes", jars(".venv"), newest]
    subprocess.run(command, check=True)
    sources = [path for path in (ROOT / "jvm/src/main/java").rglob("*.java") if path.stem not in NEWER]
    # what is newer comes from the classes themselves, and from the newest Spark where the oldest has no such class
    path = f"{jars('.venv-spark35')}/*:{newest}:{ROOT / 'jvm/src/java8'}:{jars('.venv')}/*"
    flags = ("--release", "8", "-Xlint:-options", "-implicit:none", "-cp", path)
    subprocess.run(["javac", *flags, "-d", oldest, *sources], check=True)
    compiled = sorted(file.relative_to(oldest) for file in oldest.rglob("*.class"))
    assert len(compiled) > 30
    assert [name for name in compiled if (oldest / name).read_bytes() != (newest / name).read_bytes()] == []
