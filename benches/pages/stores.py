"""The tables of stores: Spark on a store, scans, appends and recovery."""

from __future__ import annotations

from pages.row import Row
from pages.table import Table

_ARROW, _PARQUET = "`mapInArrow`", "uncompressed Parquet"
_TUNED, _DEFAULTS = "Kafka tuned", "Kafka's defaults"
_MEMORY = "batches that are ready in memory"
_LOOP, _GET = "a bare Rust loop over warm maps", "RocketMQ's `getMessage` and decode"
_HAND, _FROM_JSON = "`scan(columns=…, tags=…)`", "`from_json` on the same source"
_BEYOND = "what it adds to the scan"
_PUT = "RocketMQ's `putMessage`"

COLUMNAR = Table(
    (
        Row("`sum(length(body))`", "columnar sum columnar {}", f"{_ARROW}, all columns", "columnar sum arrow {}"),
        Row("", "columnar sum columnar {}", f"{_ARROW}, only the body", "columnar sum pruned {}"),
        Row("", "columnar sum columnar {}", _PARQUET, "columnar sum Parquet {}"),
        Row("its CPU a row", "columnar sum columnar {}", f"{_ARROW}, all columns", "columnar sum arrow {}", "cpu"),
        Row("noop write of eight columns", "columnar noop columnar {}", _ARROW, "columnar noop arrow {}"),
        Row("", "columnar noop columnar {}", _PARQUET, "columnar noop Parquet {}"),
        Row(
            "one tag of a hundred, rows examined",
            "columnar tag columnar {}",
            "tag given to `read_store`",
            "columnar tag arrow {}",
        ),
        Row("", "columnar tag columnar {}", _PARQUET, "columnar tag Parquet {}"),
        Row(
            "`max(queue_offset)`, from the consume queues",
            "columnar max columnar {}",
            "the Python data source",
            "columnar max source {}",
        ),
        Row(
            "a Python function next: `map_store`",
            "columnar python map_store {}",
            "columnar, then `mapInArrow`",
            "columnar python columnar {}",
        ),
        Row("`read_store`, arrow, all columns", "spark arrow {}", _MEMORY, "spark ready batches {}"),
        Row("data source `rocketmq`, all columns", "spark source {}", _MEMORY, "spark ready batches {}"),
    )
)

KAFKA = Table(
    (
        Row("columnar source, `sum(length(body))`", "kafka rmqfast columnar {}", _TUNED, "kafka tuned {}"),
        Row("`read_store`, arrow, all 21 columns", "kafka rmqfast arrow {}", _TUNED, "kafka tuned {}"),
        Row("", "kafka rmqfast arrow {}", _DEFAULTS, "kafka default {}"),
        Row("`read_store`, arrow, eight columns", "kafka rmqfast arrow eight {}", _TUNED, "kafka tuned {}"),
        Row("data source `rocketmq`, all columns", "kafka rmqfast source {}", _TUNED, "kafka tuned {}"),
        Row("", "kafka rmqfast source {}", _DEFAULTS, "kafka default {}"),
        Row("`read_store`, pandas, all columns", "kafka rmqfast pandas {}", _DEFAULTS, "kafka default {}"),
        Row(
            "`read_store`, arrow, one tag of a hundred, rows examined",
            "kafka rmqfast arrow tag {}",
            "Kafka with a filter on its key",
            "kafka key {}",
        ),
    )
)

SCANS = Table(
    (
        Row("scan to Arrow, all columns but the properties", "scan rmqfast {}", _GET, "scan RocketMQ decoded {}"),
        Row("", "scan rmqfast {}", _LOOP, "scan bare Rust loop {}"),
        Row("eight columns", "scan rmqfast eight {}", _LOOP, "scan bare Rust loop {}"),
        Row('the same by maps under leases (`io="auto"`)', "scan rmqfast leased {}", _LOOP, "scan bare Rust loop {}"),
        Row(
            'all columns but the properties from maps (`io="mmap"`)',
            "scan rmqfast mapped {}",
            _LOOP,
            "scan bare Rust loop {}",
        ),
        Row(
            "time with every body's CRC checked", "scan rmqfast CRC {}", "without the check", "scan rmqfast {}", "time"
        ),
        Row("without body and properties", "scan rmqfast narrow {}", "with both", "scan rmqfast all {}"),
        Row("one tag of a hundred, entries examined", "tag rmqfast {}", "`getMessage` with the tag", "tag RocketMQ {}"),
        Row("the same from maps under leases", "tag rmqfast leased {}", "`getMessage` with the tag", "tag RocketMQ {}"),
        Row("the same from maps", "tag rmqfast mapped {}", "`getMessage` with the tag", "tag RocketMQ {}"),
        Row("scan of a store of 8 GiB", "growth large", "of 1 GiB", "growth small"),
        Row("scan of 10 GiB, all columns", "memory rmqfast"),
        Row("its anonymous memory", "memory rmqfast", kind="value", unit="MiB"),
        Row("a copy in memory, by `memcpy`", "memcpy", unit="B/s"),
        Row("time of `import rmqfast`", "import rmqfast", kind="value", unit="ms"),
    )
)

QUERIES = Table(
    (
        Row("SQL by DuckDB, two columns of one tag of a hundred", "query DuckDB {}", _HAND, "query by hand {}", "cpu"),
        Row("a lazy frame of Polars, the same", "query Polars {}", _HAND, "query by hand {}", "cpu"),
        Row(
            "SQL by DuckDB, `GROUP BY tags`, two threads",
            "query groups {}",
            _PARQUET,
            "query groups Parquet {}",
            "time",
        ),
        Row("JSON in Spark, one field of ten", "decode scan one", _FROM_JSON, "decode from_json one", "cpu"),
        Row("three fields", "decode scan three", _FROM_JSON, "decode from_json three", "cpu"),
        Row("all fields", "decode scan all", _FROM_JSON, "decode from_json all", "cpu"),
    )
)

INGESTS = Table(
    (
        Row("Parquet, whole", "ingest parquet {}", "`pyarrow`", "ingest pyarrow {}", "cpu"),
        Row(_BEYOND, "ingest parquet beyond scan {}", "`pyarrow`", "ingest pyarrow {}", "cpu"),
        Row("Delta, whole", "ingest delta {}", "`write_deltalake`", "ingest deltalake {}", "cpu"),
        Row(_BEYOND, "ingest delta beyond scan {}", "`write_deltalake`", "ingest deltalake {}", "cpu"),
        Row("Iceberg, whole", "ingest iceberg {}", "`pyiceberg`", "ingest pyiceberg {}", "cpu"),
        Row(_BEYOND, "ingest iceberg beyond scan {}", "`pyiceberg`", "ingest pyiceberg {}", "cpu"),
        Row("the scan", "ingest scan {}", kind="cpu"),
        Row("a row group, with 50 topics", "ingest row groups", unit=" MiB"),
        Row("anonymous memory, 10 GiB", "ingest memory", kind="value", unit="MiB"),
    )
)

APPENDS = Table(
    (
        Row(
            "`append_many` of Arrow batches, index on, no wait for the disk",
            "append rmqfast {}",
            _PUT,
            "append RocketMQ {}",
        ),
        Row("`append`, one message a call, from Python", "append rmqfast singly {}", _PUT, "append RocketMQ {}"),
        Row("the same from Rust", "append Rust caller {}", _PUT, "append RocketMQ {}"),
        Row("", "append Rust caller {}", "as many bytes copied into maps, pages made ready", "append bare maps {}"),
        Row(
            "64 threads that wait for the disk with each append",
            "sync appends {}",
            "groups of the same size written by one",
            "sync bare groups {}",
        ),
        Row(
            "recovery after a crash, every body's CRC, the index built anew",
            "recovery rmqfast",
            "RocketMQ's",
            "recovery RocketMQ",
            unit="B/s",
        ),
        Row("the same where all consume queues are gone", "recovery rmqfast, no queues", unit="B/s"),
    )
)
