"""Examines Spark on this machine: its release, Java, the Python of its workers, and two reads.

Source: PySpark's `java_gateway`, `spark-class`, `worker.py` (versions of Python).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from rmqfast.doctor import Diagnosis, Finding, Level
from rmqfast.message import Message
from rmqfast.spark.columnar import jar_path
from rmqfast.store import AppendOptions, open_store
from rmqfast.version import __version__

_PATIENCE = 60.0
_SUBJECT = "Spark on this machine"
#: Oldest Java of each Spark, by major version.
_OLDEST_JAVA = {3: 8, 4: 17}
_ASK = "import sys, rmqfast; print(sys.version_info[0], sys.version_info[1], rmqfast.__version__)"
_TOPIC = "examined"
#: The engine inside the JVM, and one of workers.
_ENGINES: tuple[Literal["columnar", "arrow"], ...] = ("columnar", "arrow")


def examine_spark() -> Diagnosis:
    """Returns why Spark on this machine cannot read RocketMQ. Starts a local session, which takes seconds.

    Example:
        >>> from rmqfast.spark import examine_spark
        >>> examine_spark().subject
        'Spark on this machine'
    """
    findings = list(_installation())
    if not findings:
        findings += [*_java(), *_workers(), *_spark_home(), *_jar()]
    # A session that cannot start would only repeat what is found.
    if not any(finding.level is Level.PROBLEM for finding in findings):
        findings += _reads()
    return Diagnosis.of(_SUBJECT, findings)


def _installation() -> Iterator[Finding]:
    for name in ("pyspark", "pyarrow", "pandas"):
        if find_spec(name) is None:
            yield _finding("spark-missing", f"{name} is not installed", "pip install 'rmqfast[spark]'")


def _java() -> Iterator[Finding]:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    place = f"JAVA_HOME={home}" if home else "PATH"
    oldest = _OLDEST_JAVA.get(_pyspark_version()[0], max(_OLDEST_JAVA.values()))
    step = f"install Java {oldest} or newer, and set JAVA_HOME to it"
    told = None if java is None else _output(java, "-version")
    version = None if told is None else re.search(r'version "(?:1\.)?(\d+)', told)
    if version is None:
        yield _finding("spark-java", f"{place} leads to no Java" + (f": {told}" if told else ""), step)
    elif int(version[1]) < oldest:
        yield _finding("spark-java", f"{place} leads to Java {version[1]}, and this Spark needs {oldest}", step)


def _workers() -> Iterator[Finding]:
    """Yields a finding if workers would run another Python, or one without this package."""
    python = os.environ.get("PYSPARK_PYTHON")
    if python is None:
        return  # `configure` lets workers run this Python
    told = _output(python, "-c", _ASK)
    here = f"{sys.version_info[0]} {sys.version_info[1]} {__version__}"
    if told != here:
        evidence = (
            f"workers run PYSPARK_PYTHON={python}, where Python and rmqfast are {told or 'not there'}; here {here}"
        )
        yield _finding(
            "spark-python", evidence, "let PYSPARK_PYTHON lead to a Python with the same packages, or unset it"
        )


def _spark_home() -> Iterator[Finding]:
    home = os.environ.get("SPARK_HOME")
    if home is None:
        return
    jars = sorted(Path(home, "jars").glob("spark-core_*.jar"))
    versions = {jar.stem.rpartition("-")[2] for jar in jars}
    own = ".".join(map(str, _pyspark_version()))
    if not any(version.startswith(own) for version in versions):
        evidence = f"SPARK_HOME={home} has Spark {', '.join(sorted(versions)) or 'no jars'}, and PySpark is {own}"
        yield _finding("spark-home", evidence, "unset SPARK_HOME, or install the PySpark of that release")


def _jar() -> Iterator[Finding]:
    if jar_path() is None:
        yield _finding(
            "spark-jar",
            "this build has no jar of the source rocketmq-columnar, so that reads are slower",
            "install a wheel: pip install rmqfast",
            Level.ADVICE,
        )


def _reads() -> Iterator[Finding]:
    """Yields a finding for each engine that cannot read a little store."""
    from rmqfast.spark.reader import read_store
    from rmqfast.spark.session import session

    with tempfile.TemporaryDirectory(prefix="rmqfast-doctor-") as directory:
        with open_store(directory, mode="a", options=AppendOptions(file_size=1 << 20)) as store:
            store.append(Message(_TOPIC, b"x"))
        try:
            with session("rmqfast doctor", master="local[1]") as spark:
                for engine in _ENGINES if jar_path() else _ENGINES[1:]:
                    yield from _read(partial(read_store, spark, directory, _TOPIC, engine=engine), engine)
        except Exception as error:  # noqa: BLE001  # whatever Spark raises is the evidence
            yield _finding(
                "spark-fails", f"no session starts: {_first_line(error)}", "see its log above; JAVA_HOME, memory"
            )


def _read(load: Callable[[], Any], engine: str) -> Iterator[Finding]:
    try:
        count = load().count()
    except Exception as error:  # noqa: BLE001  # whatever Spark raises is the evidence
        step = "`rmqfast doctor STORE` and docs/troubleshooting.md know such errors"
        yield _finding("spark-fails", f"the engine {engine} reads no store: {_first_line(error)}", step)
    else:
        if count != 1:
            yield _finding("spark-fails", f"the engine {engine} reads {count} messages of 1", "report this")


def _finding(name: str, evidence: str, next_step: str, level: Level = Level.PROBLEM) -> Finding:
    return Finding(name=name, subject=_SUBJECT, evidence=evidence, next_step=next_step, level=level)


def _pyspark_version() -> tuple[int, ...]:
    import pyspark

    return tuple(map(int, re.findall(r"\d+", pyspark.__version__)[:3]))


def _output(*command: str) -> str | None:
    """Returns what a program prints. `None` if it cannot be started."""
    try:
        # The user's own Java and Python.
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout + done.stderr).strip()


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
