"""The groups of measurements under Spark: the engines and their ceiling; the columnar source; the source of Kafka."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from data import TAG, Dataset, scratch_dir, store
from documents import QUERIES, document_store
from groups import Plan, log
from kafka import Kafka, connector_jars
from measurement import Series, Variants, checked, interleave, unmeasured
from peer import Answer, Failed, Missing, Peer
from rocketmq import JAVA
from rows import rmqfast

#: Bodies of JSON; a quick run has fewer.
DOCUMENTS = 1 << 18


def spark(plan: Plan) -> list[Series]:
    """Spark of the project's own environment: the engines, their ceiling, other formats."""
    require_spark(plan.spark_python)
    return [series for dataset in plan.datasets for series in spark_of(dataset, plan)]


def spark_of(dataset: Dataset, plan: Plan) -> list[Series]:
    """The jobs of one dataset in one session."""
    path, at, count, size, total = store(dataset), dataset.label, dataset.rows, dataset.body, dataset.body_bytes
    with Peer(command(plan.spark_python), log("spark")) as peer:

        def job(*request: object) -> Callable[[], Answer]:
            return lambda: checked(peer.ask(*request), rows=count, bytes=total)

        variants: Variants = {
            f"spark ready batches {at}": job("ready", size, count),
            f"spark ready narrow {at}": job("ready_narrow", size, count),
            f"spark arrow {at}": job("engine", path, "arrow"),
            f"spark source {at}": job("source", path),
            f"spark pandas {at}": job("engine", path, "pandas"),
            f"spark plain Python {at}": job("plain", path, size, count),
            f"spark Parquet {at}": job("parquet", at, size, count),
        }
        return interleave(variants, plan.effort, [path])


def columnar(plan: Plan) -> list[Series]:
    """The columnar source against the ways through Python and Parquet, a query at a time."""
    require_spark(plan.spark_python)
    return [series for dataset in plan.datasets for series in columnar_of(dataset, plan)]


def columnar_of(dataset: Dataset, plan: Plan) -> list[Series]:
    """The queries of one dataset in one session; a filter's rate counts the rows examined."""
    path, at, count, size = store(dataset), dataset.label, dataset.rows, dataset.body
    hits = dataset.tagged_rows
    found = {
        "sum": {"rows": count, "bytes": dataset.body_bytes},
        "tag": {"rows": hits, "bytes": hits * size},
        "python": {"bytes": dataset.body_bytes},
    }
    with Peer(command(plan.spark_python), log("columnar")) as peer:

        def job(query: str, route: str) -> Callable[[], Answer]:
            request = ("route", query, route, path, at, size, count)
            return lambda: {**checked(peer.ask(*request), **found.get(query, {})), "rows": count}

        routes = {
            "sum": ("columnar", "arrow", "pruned", "source", "Parquet"),
            "noop": ("columnar", "arrow", "Parquet"),
            "max": ("columnar", "source", "Parquet"),
            "count": ("columnar", "source", "Parquet"),
            "tag": ("columnar", "arrow", "Parquet"),
            "python": ("columnar", "map_store"),
        }
        variants = {
            f"columnar {query} {route} {at}": job(query, route) for query, among in routes.items() for route in among
        }
        return interleave(variants, plan.effort, [path])


def decode(plan: Plan) -> list[Series]:
    """Bodies of JSON as columns: fields that the columnar source decodes, and the same by Spark's `from_json`."""
    require_spark(plan.spark_python)
    count = int(DOCUMENTS * plan.scale)
    path = document_store(rmqfast(), count)
    with Peer(command(plan.spark_python), log("decode")) as peer:

        def job(query: str, way: str) -> Callable[[], Answer]:
            return lambda: checked(peer.ask("decoded", path, query, way), rows=count, ids=count * (count - 1) // 2)

        variants = {f"decode {way} {query}": job(query, way) for query in QUERIES for way in ("scan", "from_json")}
        return interleave(variants, plan.effort, [path])


def kafka(plan: Plan) -> list[Series]:
    """Kafka's source and rmqfast's in one session."""
    require_spark(plan.kafka_python)
    return [series for dataset in plan.datasets for series in attempted_kafka(dataset, plan)]


def attempted_kafka(dataset: Dataset, plan: Plan) -> list[Series]:
    """The jobs of one dataset; a broker that does not start leaves the other dataset its chance."""
    try:
        return kafka_of(dataset, plan)
    except (Missing, Failed, OSError) as error:
        return [unmeasured(f"kafka {mode} {dataset.label}", error) for mode in ("default", "tuned", "key")]


def kafka_of(dataset: Dataset, plan: Plan) -> list[Series]:
    """The jobs of one dataset, with a broker of its own."""
    path, at, hits = store(dataset), dataset.label, dataset.tagged_rows
    jars = connector_jars(spark_version(plan.kafka_python))
    with Kafka() as broker, Peer(command(plan.kafka_python, jars), log("kafka-spark")) as peer:
        topic = broker.fill(dataset)

        def whole(*request: object) -> Callable[[], Answer]:
            return lambda: checked(peer.ask(*request), rows=dataset.rows, bytes=dataset.body_bytes)

        def part(*request: object) -> Callable[[], Answer]:
            # a filter's rate counts the rows examined
            return lambda: {**checked(peer.ask(*request), rows=hits, bytes=hits * dataset.body), "rows": dataset.rows}

        variants: Variants = {
            f"kafka default {at}": whole("kafka", broker.bootstrap, topic, "default"),
            f"kafka tuned {at}": whole("kafka", broker.bootstrap, topic, "tuned"),
            f"kafka key {at}": part("kafka", broker.bootstrap, topic, "key"),
            f"kafka rmqfast arrow {at}": whole("engine", path, "arrow"),
            f"kafka rmqfast arrow eight {at}": whole("engine", path, "arrow", "*", "eight"),
            f"kafka rmqfast source {at}": whole("source", path),
            f"kafka rmqfast pandas {at}": whole("engine", path, "pandas"),
            f"kafka rmqfast columnar {at}": whole("engine", path, "columnar"),
            f"kafka rmqfast arrow tag {at}": part("engine", path, "arrow", TAG),
            f"kafka rmqfast source tag {at}": part("source", path, TAG),
        }
        return interleave(variants, plan.effort, [path, broker.data])


def require_spark(python: str) -> None:
    """Raises Missing unless the interpreter is there and has pyspark."""
    spark_version(python)


def spark_version(python: str) -> str:
    """The version of an interpreter's pyspark; Missing where there is none."""
    if not Path(python).exists():
        raise Missing(f"no interpreter at {python}")
    asked = subprocess.run(
        [python, "-c", "import pyspark; print(pyspark.__version__)"], capture_output=True, text=True, check=False
    )
    if asked.returncode != 0:
        raise Missing(f"{python} has no pyspark")
    return asked.stdout.strip()


def spark_classes(python: str) -> str:
    """The classes below java/spark, compiled against an interpreter's Spark if they are not yet; as a class path.

    Those of Real-Time Mode, which there is from 4.1 on, stand below java/real-time.
    """
    if shutil.which("javac") is None:
        raise Missing("javac is not installed")
    version = spark_version(python)
    has_real_time = tuple(map(int, version.split(".")[:2])) >= (4, 1)
    folders = ["spark", "real-time"] if has_real_time else ["spark"]
    sources = [source for folder in folders for source in sorted(JAVA.glob(f"{folder}/**/*.java"))]
    target = scratch_dir() / "java" / f"spark-{version}"
    newest = max(source.stat().st_mtime for source in sources)
    if not target.exists() or target.stat().st_mtime < newest:
        shutil.rmtree(target, ignore_errors=True)
        program = "import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent / 'jars')"
        jars = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
        compiler = ["javac", "--release", "17", "-cp", f"{jars}/*", "-d", str(target), *map(str, sources)]
        done = subprocess.run(compiler, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"javac: {done.stderr.strip()[:300]}")
    return str(target)


def command(python: str, jars: str = "") -> list[str]:
    """Starts the Spark jobs under an interpreter that has pyspark, with a class path of more jars."""
    return [python, str(Path(__file__).resolve().parent / "spark_peers.py"), jars]
