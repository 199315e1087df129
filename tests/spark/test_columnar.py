"""The data source `rocketmq-columnar`: the rows of the Python path; columns, filters and limits go into the scan."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmqfast import Message, errors
from rmqfast.errors import CorruptError
from rmqfast.spark import MapArguments, map_store, read_store
from rmqfast.spark.columnar import plain_error
from rmqfast.spark.ingest import read_all
from rmqfast.store import COLUMNS, open_store
from tests import golden_stores
from tests.golden_stores import PathOf
from tests.waiting import until

from .conditions import PARTLY, WHOLE
from .conftest import Matching, plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("rocketmq-columnar").options(storePath=str(path), **options).load()


def rows(frame: DataFrame) -> list[str]:
    """Rows as texts, in any order: a map has none, and its pairs come as they are stored."""
    return texts(frame.collect())


def texts(found: Sequence[tuple[Any, ...]]) -> list[str]:
    return sorted(repr(tuple(row)) for row in found)


def told(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What this package has logged; py4j logs, too."""
    return [record for record in caplog.records if record.name == "rmqfast.spark"]


def numbers(frame: DataFrame, condition: str) -> list[int]:
    return sorted(row[0] for row in frame.where(condition).select("physical_offset").collect())


def test_each_column_by_itself_is_that_of_the_python_path(
    spark: SparkSession, golden_store: PathOf, python_path: DataFrame
) -> None:
    columnar = load(spark, golden_store("basic-4.9.4"), topic="fx_q4", brokerName="broker-a")
    wanted = python_path.where("topic = 'fx_q4'").collect()
    for column in COLUMNS:
        found = columnar.select("physical_offset", column).collect()
        assert texts(found) == texts([(row.physical_offset, row[column]) for row in wanted]), column


def test_without_generated_code_rows_are_the_same(
    spark: SparkSession, golden_store: PathOf, python_path: DataFrame
) -> None:
    wanted = rows(python_path)
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    try:
        assert rows(load(spark, golden_store("basic-4.9.4"), brokerName="broker-a")) == wanted
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", "true")


@pytest.mark.newest
def test_values_outlive_their_batch(spark: SparkSession, golden_store: PathOf, python_path: DataFrame) -> None:
    """What sorts, joins, groups or caches keeps rows while the vectors are filled anew."""
    columnar = load(spark, golden_store("basic-4.9.4"), topic="fx_q1", minPartitions="6", brokerName="broker-a")
    arrow = python_path.where("topic = 'fx_q1'")
    shapes: tuple[Callable[[DataFrame], DataFrame], ...] = (
        lambda frame: frame.orderBy("body", "queue_offset").select("queue_offset", "body"),
        lambda frame: frame.groupBy("tags").agg({"msg_id": "max", "body": "min", "queue_offset": "sum"}),
        lambda frame: frame.join(frame.selectExpr("queue_offset q", "keys k"), on=[frame.queue_offset == 3]),
        lambda frame: frame.cache(),
    )
    for shape in shapes:
        assert rows(shape(columnar)) == rows(shape(arrow))
    columnar.unpersist()
    arrow.unpersist()


def test_only_the_columns_that_a_query_uses_are_read(
    spark: SparkSession, golden_store: PathOf, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = load(spark, golden_store("basic-4.9.4"), topic="fx_q1")
    checked = load(spark, golden_store("basic-4.9.4"), topic="fx_q1", verifyCrc="true")
    assert " [] PushedFilters" in plan(checked.groupBy().count(), capsys)
    assert "[tags, body] PushedFilters" in plan(frame.selectExpr("length(body)", "tags"), capsys)
    assert checked.count() == 1259


def test_a_schema_of_the_users_chooses_columns_in_its_order(spark: SparkSession, golden_store: PathOf) -> None:
    reader = spark.read.format("rocketmq-columnar").schema("tags string, queue_offset bigint")
    frame = reader.option("topic", "fx_q1").load(str(golden_store("basic-4.9.4")))
    wanted = read_store(spark, golden_store("basic-4.9.4"), "fx_q1", columns=["tags", "queue_offset"], engine="arrow")
    assert frame.columns == ["tags", "queue_offset"]
    assert rows(frame) == rows(wanted)
    with pytest.raises(Exception, match=r"schema: expected .* tags, got tags, queue_offset"):
        reader.option("columns", "tags").load(str(golden_store("basic-4.9.4")))


@pytest.mark.parametrize("condition", [*WHOLE, *PARTLY])
def test_a_filter_is_gone_from_the_plan_where_a_scan_does_it_exactly(
    spark: SparkSession,
    golden_store: PathOf,
    matching: Matching,
    capsys: pytest.CaptureFixture[str],
    condition: str,
) -> None:
    frame = load(spark, golden_store("basic-4.9.4")).where(condition).select("physical_offset")
    assert (" Filter " in plan(frame, capsys)) == (condition in PARTLY)
    assert sorted(row[0] for row in frame.collect()) == matching(condition)


def test_a_filter_that_leaves_nothing_for_many_megabytes_ends_no_job(spark: SparkSession, tmp_path: Path) -> None:
    """A task looks whether it was killed after so many, and goes on."""
    with open_store(tmp_path / "store", mode="a") as store:
        for key in ("wanted", *["other"] * 20, "wanted"):
            store.append(Message("orders", b"x" * (1 << 20), keys=key))
    assert load(spark, tmp_path / "store", keys="wanted").count() == 2


@pytest.mark.parametrize("condition", ["topic IS NULL", "broker_name IS NULL", "broker_name IS NOT NULL"])
def test_nulls_that_cannot_be_are_known_before_anything_is_read(
    spark: SparkSession, golden_store: PathOf, capsys: pytest.CaptureFixture[str], condition: str
) -> None:
    frame = load(spark, golden_store("basic-4.9.4"))
    assert " Filter " not in plan(frame.where(condition), capsys)
    assert len(numbers(frame, condition)) == (2779 if condition == "broker_name IS NULL" else 0)


_TEXTS = ["TagA", "Aa", "BB", "fx_q1", "fx_q4", "nobody"]
_CONDITIONS = st.one_of(
    st.builds("{} = '{}'".format, st.sampled_from(["tags", "topic", "keys"]), st.sampled_from(_TEXTS)),
    st.builds("tags IN ('{}', '{}')".format, st.sampled_from(_TEXTS), st.sampled_from(_TEXTS)),
    st.builds(
        "{} {} {}".format,
        st.sampled_from(["queue_id", "queue_offset", "physical_offset", "flag"]),
        st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]),
        st.integers(-2, 600),
    ),
    st.builds("{} IS {} NULL".format, st.sampled_from(COLUMNS), st.sampled_from(["", "NOT"])),
    st.builds(
        "store_timestamp {} timestamp_micros({})".format,
        st.sampled_from(["=", "<", "<=", ">", ">="]),
        st.integers(1_795_231_238_000_000, 1_795_231_246_000_000),
    ),
)


@settings(max_examples=10)
@given(
    columns=st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=5, unique=True),
    conditions=st.lists(_CONDITIONS, max_size=4),
    topic=st.sampled_from([None, "fx_q4"]),
)
def test_any_columns_and_any_filters_give_the_same_rows_on_both_paths(  # noqa: PLR0917 - fixtures and what is drawn
    spark: SparkSession,
    golden_store: PathOf,
    python_path: DataFrame,
    columns: list[str],
    conditions: list[str],
    topic: str | None,
) -> None:
    frame = read_store(spark, golden_store("basic-4.9.4"), topic, engine="columnar", broker_name="broker-a")
    arrow = python_path if topic is None else python_path.where(f"topic = '{topic}'")
    condition = " AND ".join(f"({c})" for c in conditions) or "true"
    assert rows(frame.where(condition).select(*columns)) == rows(arrow.where(condition).select(*columns))


@pytest.mark.parametrize("name", ["basic-4.9.4", "offsets-4.9.4"])
def test_consume_queues_alone_tell_counts_and_extremes_of_queue_offsets(
    spark: SparkSession, golden_store: PathOf, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["count(*)", "min(queue_offset)", "max(queue_offset)", "count(1)"]
    with open_store(golden_store(name)) as store:
        columns = ["queue_id", "queue_offset"]
        listed = {topic: store.scan(topic, columns=columns).to_arrow().to_pylist() for topic in store.topics()}
    assert listed
    for topic, places in listed.items():
        frame = load(spark, golden_store(name), topic=topic)
        first = [place["queue_offset"] for place in places if place["queue_id"] == 0 and place["queue_offset"] >= 3]
        for some, offsets in (
            (frame, [place["queue_offset"] for place in places]),
            (frame.where("queue_id = 0 AND queue_offset >= 3"), first),
            (frame.where("queue_offset < 0"), []),
        ):
            told = some.selectExpr(*asked)
            assert "LocalTableScan [listed_0" in plan(told, capsys)
            expected = (len(offsets), min(offsets, default=None), max(offsets, default=None), len(offsets))
            assert tuple(told.collect()[0]) == expected


@pytest.mark.parametrize(
    "condition", ["tags = 'TagA'", "store_timestamp > '2020-01-01'", "keys IS NOT NULL", "length(body) > 0"]
)
def test_what_queues_do_not_list_is_counted_by_reading(
    spark: SparkSession, golden_store: PathOf, condition: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = load(spark, golden_store("basic-4.9.4"), topic="fx_q1").where(condition)
    assert "LocalTableScan [listed_0" not in plan(frame.selectExpr("count(*)"), capsys)
    assert frame.count() == len(frame.select("physical_offset").collect())


def test_a_crashed_store_is_counted_by_reading(
    spark: SparkSession, golden_store: PathOf, capsys: pytest.CaptureFixture[str]
) -> None:
    """No queue is known to list the end of its log."""
    name = next(name for name in golden_stores.NAMES if name.startswith("crash"))
    with open_store(golden_store(name)) as store:
        topics = store.topics()
        counts = {topic: store.scan(topic).to_arrow().num_rows for topic in topics}
    for topic, count in counts.items():
        frame = load(spark, golden_store(name), topic=topic)
        assert "LocalTableScan [listed_0" not in plan(frame.selectExpr("count(*)"), capsys)
        assert frame.count() == count


def test_a_limit_goes_into_the_scan(
    spark: SparkSession, golden_store: PathOf, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = load(spark, golden_store("basic-4.9.4"), minPartitions="8")
    limited = frame.where("tags = 'TagA'").limit(10)
    assert "PushedLimit: 10" in plan(limited, capsys)
    assert len(limited.collect()) == limited.count() == 10
    assert {row.tags for row in limited.collect()} == {"TagA"}
    assert len(frame.take(3000)) == 2779
    assert len(frame.where("length(body) > 100").take(5)) == 5


@pytest.mark.newest
def test_small_partitions_are_a_task_each_and_share_no_message(
    spark: SparkSession, golden_store: PathOf, python_path: DataFrame
) -> None:
    for condition, tags in (("topic = 'fx_q4'", "*"), ("topic = 'fx_q4' AND tags = 'Aa'", "Aa")):
        frame = load(spark, golden_store("basic-4.9.4"), topic="fx_q4", partitionBytes="4000", tags=tags)
        assert numbers(frame, "true") == numbers(python_path, condition)
        assert frame.rdd.getNumPartitions() > 20


def test_each_job_plans_anew(spark: SparkSession, golden_store_copy: PathOf) -> None:
    path = golden_store_copy("basic-4.9.4")
    frame = load(spark, path)
    (path / "commitlog" / "00000000000000000000").unlink()
    left = [r for r in golden_stores.expected_rows("basic-4.9.4") if r["physical_offset"] >= 1 << 20]
    assert frame.count() == len(left)


def test_a_log_that_is_cut_off_while_it_is_read_ends_the_job_and_not_the_jvm(
    spark: SparkSession, golden_store_copy: PathOf
) -> None:
    path = golden_store_copy("basic-4.9.4")
    whole = len(golden_stores.expected_rows("basic-4.9.4"))
    last = max(p for p in (path / "commitlog").iterdir() if p.stat().st_size)
    before = last.read_bytes()

    frame = read_store(spark, path, None, engine="columnar", min_partitions=4, columns=["body", "properties"])
    rows = frame.toLocalIterator()  # partition by partition
    next(rows)
    os.truncate(last, len(before) // 16)
    try:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark's own class differs by version
            list(rows)
    finally:
        last.write_bytes(before)
    assert isinstance(plain_error(caught.value), CorruptError)
    assert load(spark, path).count() == whole


@pytest.mark.newest
def test_tasks_leave_no_file_open(spark: SparkSession, golden_store: PathOf) -> None:
    """Whole ones, those that a limit ends early, and those that fail: what Rust holds is freed with each task."""
    frame = load(spark, golden_store("basic-4.9.4"), partitionBytes="200000")
    damaged = load(spark, golden_store("damaged-4.9.4"), partitionBytes="200000")
    assert frame.rdd.getNumPartitions() > 8
    assert frame.selectExpr("sum(length(body) + size(properties))").first() is not None
    assert frame.where("length(body) > 100").select("body", "properties").limit(3).count() == 3
    with pytest.raises(Exception, match="CorruptError"):
        damaged.selectExpr("max(body)").collect()
    # a job that failed does not wait for its other tasks
    until(lambda: _open_logs(spark) == 0)


def _open_logs(spark: SparkSession) -> int:
    """Files of a commit log that the JVM has open: a task that is not freed keeps its file."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no other way to its JVM
    descriptors = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/fd")
    return sum("/commitlog/" in os.path.realpath(link) for link in descriptors.iterdir())


def test_damage_is_an_error_of_this_package_where_it_reads_for_the_user(
    spark: SparkSession, golden_store: PathOf
) -> None:
    with pytest.raises(CorruptError, match=r"^store .* 1 damaged places: .* at offset 1508364, 24117"):
        read_all(spark, golden_store("damaged-4.9.4"), None, engine="columnar")


@pytest.mark.parametrize(
    "told",
    [
        errors.ClientError("broker b at h:1 cannot be asked: CODE: 1  DESC: no", next_step="see that it runs"),
        errors.ResponseError(1, "Check signature failed", "10.0.0.1:10911"),
        errors.ResponseError(17, "no"),
        errors.CorruptError("3 damaged places"),
    ],
)
@pytest.mark.parametrize(
    "before",
    [
        "org.rmqfast.spark.SourceException: ",
        "Job aborted: Lost task 0.0 in stage 1.0 (TID 1): org.rmqfast.spark.SourceException: ",
        "(org.rmqfast.spark.SourceException) ",
    ],
)
@pytest.mark.parametrize(
    "behind", ["", "\n\tat org.rmqfast.spark.Native.next(Native Method)\n", "\n\nJVM stacktrace:\n"]
)
def test_an_error_of_the_jvm_keeps_its_class_and_all_its_lines(told: errors.RmqError, before: str, behind: str) -> None:
    plain = plain_error(RuntimeError(f"{before}{type(told).__name__}: {told}{behind}"))
    assert (type(plain), str(plain)) == (type(told), str(told))


@pytest.mark.parametrize("engine", ["auto", "columnar"])
def test_the_log_says_that_it_is_columnar(
    spark: SparkSession, golden_store: PathOf, caplog: pytest.LogCaptureFixture, engine: Literal["auto", "columnar"]
) -> None:
    with caplog.at_level(logging.INFO, "rmqfast.spark"):
        read_store(spark, golden_store("basic-4.9.4"), "fx_q1", engine=engine)
    assert [(r.levelname, r.getMessage()[:15]) for r in told(caplog)] == [("INFO", "engine columnar")]


def test_what_the_columnar_source_cannot_do_is_done_by_the_python_path_with_a_warning(
    spark: SparkSession, golden_store: PathOf, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "rmqfast.spark"):
        frame = read_store(spark, golden_store("basic-4.9.4"), "fx_q1", engine="columnar", io="mmap")
    assert [(r.levelname, "reads by pread only" in r.getMessage()) for r in told(caplog)] == [("WARNING", True)]
    assert frame.count() == 1259


def absent(spark: SparkSession, *_: object) -> None:
    spark.read.format("rocketmq-absent").load()


def without_library(*_: object) -> None:
    text = "rocketmq-columnar has no library for Linux on amd64"
    raise RuntimeError(f"An error occurred\n: org.rmqfast.spark.SourceException: RmqError: {text}\n\tat ...")


@pytest.mark.parametrize(
    ("loaded", "engine", "level", "why"),
    [
        (absent, "auto", "INFO", "no data source rocketmq-columnar in this session"),
        (absent, "columnar", "WARNING", "no data source rocketmq-columnar in this session"),
        (without_library, "auto", "WARNING", "rocketmq-columnar has no library for Linux on"),
    ],
)
def test_without_the_columnar_source_the_python_path_reads_and_the_log_says_why(  # noqa: PLR0917
    spark: SparkSession,
    golden_store: PathOf,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    loaded: Callable[..., None],
    engine: Literal["auto", "columnar"],
    level: str,
    why: str,
) -> None:
    """`test_fallback.py` sees the same in sessions of their own."""
    monkeypatch.setattr("rmqfast.spark.columnar._load_stores", loaded)
    with caplog.at_level(logging.INFO, "rmqfast.spark"):
        frame = read_store(spark, golden_store("basic-4.9.4"), "fx_q1", columns=["tags"], engine=engine)
    assert [(r.levelname, "engine arrow" in r.getMessage(), why in r.getMessage()) for r in told(caplog)] == [
        (level, True, True)
    ]
    assert frame.count() == 1259


def test_a_function_runs_where_batches_are_made(spark: SparkSession, golden_store: PathOf) -> None:
    from collections.abc import Iterator

    def counted(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        counts = [batch.num_rows for batch in batches]
        yield pa.RecordBatch.from_pydict({"rows": pa.array([sum(counts)], pa.int64())})

    options: MapArguments = {"columns": ["queue_offset"], "tags": "TagA || BBBB", "min_partitions": 5}
    frame = map_store(spark, golden_store("basic-4.9.4"), "fx_q1", counted, "rows bigint", **options)
    found = [row.rows for row in frame.collect()]
    wanted = read_store(spark, golden_store("basic-4.9.4"), "fx_q1", tags="TagA || BBBB", engine="arrow").count()
    assert sum(found) == wanted > 0
    assert len(found) == frame.rdd.getNumPartitions() >= 5
    with pytest.raises(TypeError, match="engine"):
        map_store(spark, golden_store("basic-4.9.4"), "fx_q1", counted, "rows bigint", engine="arrow")  # type: ignore[call-arg]
