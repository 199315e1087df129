"""Asks the jar of `rocketmq-columnar` in a root that has a Java, and no Python: a query, and a panic.

Spark is the folder `jars` of a PySpark on this machine, whose Java classes run on every processor.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from .roots import Root

#: Those of Spark's `JavaModuleOptions`. Java 8 reads no such variable, and needs none of them.
_PACKAGES = ("java.lang", "java.lang.invoke", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent")
_INTERNAL = ("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar")
_OPEN = " ".join(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in (*_PACKAGES, *_INTERNAL))
_QUERY = """CREATE TEMPORARY VIEW t USING `rocketmq-columnar` OPTIONS (path '/store', topic 'fx_plain');
SELECT count(*), sum(length(body)), max(queue_offset), min(length(msg_id)) FROM t;
"""
#: What `tests/golden` says of that topic.
_ROW = "120\t26557\t29\t56"
_DRIVER = "org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver"
_OPTIONS = ("--master", "local[2]", "--conf", "spark.ui.enabled=false", "--class", _DRIVER)
_SHELL = ("org.apache.spark.deploy.SparkSubmit", *_OPTIONS, "spark-internal", "-f", "/asked/query.sql")


def check(root: Root, home: Path, *, java: str, spark: Path, jar: Path, store: Path, workplace: Path) -> list[str]:
    """Runs both, and gives what went wrong.

    Args:
        root: The machine.
        home: The folder of all roots.
        java: The program in it.
        spark: The jars of a Spark.
        jar: The one that is asked.
        store: Of a real broker, `basic-4.9.4`.
        workplace: A folder for what is asked.
    """
    _prepare(workplace, jar)
    binds = {spark: "/spark", workplace: "/asked", store: "/store"}
    command = [java, "-cp", "/asked/classes:/asked/columnar.jar:/spark/*"]
    environment = {"JDK_JAVA_OPTIONS": _OPEN}
    problems = []
    query = root.run(home, [*command, *_SHELL], binds=binds, environment=environment)
    if _ROW not in query.stdout.splitlines():
        problems.append(f"query: expected {_ROW!r}, got {_end(query)}")
    panic = root.run(home, [*command, "org.rmqfast.spark.Panics"], binds=binds, environment=environment)
    if "SourceException: RmqError: a defect of rmqfast: on request" not in panic.stdout:
        problems.append(f"panic: expected a SourceException, got {_end(panic)}")
    return problems


def _prepare(workplace: Path, jar: Path) -> None:
    classes = workplace / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    (workplace / "query.sql").write_text(_QUERY)
    (workplace / "columnar.jar").write_bytes(jar.read_bytes())
    source = Path(__file__).parent / "java/Panics.java"
    command = ("javac", "--release", "8", "-Xlint:-options", "-cp", str(jar), "-d", str(classes), str(source))
    subprocess.run(command, check=True)


def _end(result: subprocess.CompletedProcess[str]) -> str:
    lines = (result.stdout + result.stderr).splitlines()
    lines = [line for line in lines if " WARN " not in line and " INFO " not in line]
    return " | ".join(lines[-4:]) or f"exit code {result.returncode}"
