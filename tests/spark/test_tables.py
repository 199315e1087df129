"""Tables of Spark's catalog over stores and topics, and the classes of errors that a user of PySpark catches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from rmqfast import EmbeddedCluster
from rmqfast.errors import DataLossError, RmqError, UnknownTopicError
from rmqfast.spark.columnar import plain_error
from tests.spark.engines import JVM, python_source
from tests.spark.live import topics
from tests.spark.live.streams import ended, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COUNT = 40
IS_OLD = pyspark.__version__ < "4.0"
has_tables = pytest.mark.skipif(IS_OLD, reason="Spark 3.5 reads tables of sources of the older interface alone")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the broker keeps its store."""
    return tmp_path_factory.mktemp("tables") / "store"


@pytest.fixture(scope="module")
def cluster(directory: Path) -> Iterator[EmbeddedCluster]:
    """A broker with two queues of `orders`."""
    with topics.cluster_in(directory, brokers=1) as started:
        topics.create(started, "orders", queues=2)
        topics.send(started, COUNT)
        yield started


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """The name of a table that is dropped in the end."""
    yield "orders_table"
    spark.sql("DROP TABLE IF EXISTS orders_table")


@has_tables
def test_a_table_of_a_topic_is_read_by_its_name(spark: SparkSession, cluster: EmbeddedCluster, table: str) -> None:
    spark.sql(
        f"CREATE TABLE {table} USING `rocketmq-columnar` OPTIONS (nameServer '{cluster.name_server}', topic 'orders') "
        "COMMENT 'all orders' TBLPROPERTIES ('quality' = 'gold')"
    )
    assert spark.table(table).count() == COUNT
    rows = spark.table(table).where("queue_offset < 5").groupBy("queue_id").count().collect()
    assert sorted((row["queue_id"], row["count"]) for row in rows) == [(0, 5), (1, 5)]


@has_tables
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("option", ["storePath", "path"])
def test_a_table_of_a_store_is_read_by_its_name(spark: SparkSession, directory: Path, table: str, option: str) -> None:
    spark.sql(f"CREATE TABLE {table} USING `rocketmq-columnar` OPTIONS ({option} '{directory}', topic 'orders')")
    assert spark.table(table).count() == COUNT


@has_tables
@pytest.mark.usefixtures("cluster")
def test_the_location_of_a_table_is_its_store(spark: SparkSession, directory: Path, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} USING `rocketmq-columnar` OPTIONS (topic 'orders') LOCATION '{directory}'")
    assert spark.table(table).count() == COUNT


@has_tables
def test_a_query_has_options_and_insert_sends(spark: SparkSession, cluster: EmbeddedCluster, table: str) -> None:
    topics.create(cluster, "copies", queues=1)
    options = f"OPTIONS (nameServer '{cluster.name_server}', topic 'copies', startingOffsets 'earliest')"
    spark.sql(f"CREATE TABLE {table} USING `rocketmq-columnar` {options}")
    rows = "SELECT binary(string(id)) AS body, if(id < 2, 'paid', 'view') AS tags FROM range(5)"
    spark.sql(f"INSERT INTO {table} {rows}")
    assert spark.read.option("tags", "paid").table(table).count() == 2


@pytest.mark.skipif(not IS_OLD, reason="Spark 4 reads such a table")
def test_spark_3_5_says_that_it_cannot_read_a_table(spark: SparkSession, cluster: EmbeddedCluster, table: str) -> None:
    options = f"OPTIONS (nameServer '{cluster.name_server}', topic 'orders')"
    spark.sql(f"CREATE TABLE {table} USING `rocketmq-columnar` {options}")
    with pytest.raises(Exception, match="rocketmq-columnar is not a valid Spark SQL Data Source"):
        spark.table(table)


def test_a_temporary_view_is_read_by_its_name(spark: SparkSession, cluster: EmbeddedCluster) -> None:
    options = f"OPTIONS (nameServer '{cluster.name_server}', topic 'orders')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW columnar_view USING `rocketmq-columnar` {options}")
    assert spark.sql("SELECT count(body) FROM columnar_view WHERE queue_id = 0").collect()[0][0] == COUNT // 2


@python_source
def test_a_table_of_the_source_in_python_is_refused_and_a_view_is_read(
    spark: SparkSession, cluster: EmbeddedCluster, table: str
) -> None:
    from pyspark.errors import AnalysisException

    from rmqfast.spark import RocketMQDataSource

    spark.dataSource.register(RocketMQDataSource)
    options = f"OPTIONS (nameServer '{cluster.name_server}', topic 'orders')"
    with pytest.raises(
        AnalysisException, match=r"reads a table of a source in Python without its options; create it USI"
    ):
        spark.sql(f"CREATE TABLE {table} USING rocketmq {options}")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders_view USING rocketmq {options}")
    assert spark.table("orders_view").count() == COUNT


@has_tables
def test_a_wrong_option_of_a_table_is_refused(spark: SparkSession, cluster: EmbeddedCluster, table: str) -> None:
    from pyspark.errors import IllegalArgumentException

    with pytest.raises(IllegalArgumentException, match="ArgumentError: unknown option tpic; did you mean topic"):
        spark.sql(
            f"CREATE TABLE {table} USING `rocketmq-columnar` "
            f"OPTIONS (nameServer '{cluster.name_server}', topic 'orders', tpic 'x')"
        )


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"topic": "order"}, UnknownTopicError),
        ({"topic": "orders", "startingOffsets": '{"orders": {"*": {"0": 999}}}'}, DataLossError),
    ],
)
def test_an_error_of_the_columnar_source_is_one_of_pyspark(
    spark: SparkSession, cluster: EmbeddedCluster, options: dict[str, str], kind: type[RmqError]
) -> None:
    from pyspark.errors import IllegalArgumentException

    read = spark.read.format(JVM).option("nameServer", cluster.name_server).options(**options)
    with pytest.raises(IllegalArgumentException, match=f"^(\\[.*\\] )?{kind.__name__}: ") as caught:
        read.load().count()
    assert type(plain_error(caught.value)) is kind


def test_the_progress_of_a_stream_names_its_topic(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    options = {"nameServer": cluster.name_server, "topic": "orders", "startingOffsets": "earliest"}
    frame = spark.readStream.format(JVM).options(**options).load()
    progress = ended(write(frame, tmp_path)).lastProgress
    assert progress is not None
    assert progress["sources"][0]["description"] == f"rocketmq-columnar[topic orders at {cluster.name_server}]"
