"""`propertyNames`: both sources give the chosen properties, of a store and of its broker, in batches and streams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.live import topics
from tests.spark.live.streams import ended, write
from tests.spark.live.topics import MESSAGES, LiveCluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

NAMES = ("region", "KEYS")


def place(cluster: LiveCluster, source: str) -> dict[str, str]:
    """The options that lead to `orders`: of all brokers, or in the store of one."""
    if source == "topic":
        return {"nameServer": cluster.name_server, "topic": "orders"}
    return {"storePath": str(topics.stores(cluster.directory)["broker-a"]), "topic": "orders"}


def pairs(frame: DataFrame) -> list[str]:
    """The properties of each message as text, in the order of the record, which a map of Python does not keep."""
    return sorted(row.text for row in frame.selectExpr("to_json(map_entries(properties)) AS text").collect())


def expected(spark: SparkSession, cluster: LiveCluster, source: str) -> list[str]:
    """What Spark itself leaves of all properties."""
    names = ", ".join(f"'{name}'" for name in NAMES)
    every = spark.read.format("rocketmq-columnar").options(**place(cluster, source)).load()
    found = pairs(every.selectExpr(f"map_filter(properties, (name, value) -> name IN ({names})) AS properties"))
    assert len(found) == (MESSAGES if source == "topic" else MESSAGES // 2)
    assert '[{"key":"region","value":"eu"}]' in found
    return found


@pytest.mark.parametrize("source", ["store", "topic"])
def test_a_batch_has_the_chosen_properties(
    spark: SparkSession, engine: str, live_cluster: LiveCluster, source: str
) -> None:
    options = place(live_cluster, source) | {"propertyNames": ", ".join(NAMES)}
    found = pairs(spark.read.format(engine).options(**options).load())
    assert found == expected(spark, live_cluster, source)


@pytest.mark.long
@pytest.mark.parametrize("source", ["store", "topic"])
def test_a_stream_has_the_chosen_properties(
    spark: SparkSession, engine: str, live_cluster: LiveCluster, source: str, tmp_path: Path
) -> None:
    options = place(live_cluster, source) | {"propertyNames": ",".join(NAMES), "startingOffsets": "earliest"}
    ended(write(spark.readStream.format(engine).options(**options).load(), tmp_path))
    assert pairs(spark.read.parquet(str(tmp_path / "out"))) == expected(spark, live_cluster, source)
