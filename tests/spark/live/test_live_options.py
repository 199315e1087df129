"""What options ask of a cluster; what each text means is in `tests/spark/test_requests.py`."""

from __future__ import annotations

from rmqfast._native import SparkOptions
from rmqfast.spark.live.options import LiveOptions

NEEDED = {"nameServer": "10.0.0.1:9876", "topic": "orders"}
TEXTS = {
    "NAMESERVER": "10.0.0.1:9876;10.0.0.2:9876",
    "Topic": " orders ",
    "group": "lake",
    "subexpression": "A || B",
    "sql": "a > 1",
    "keys": '["a,b", "c"]',
    "queueids": "[0, 3]",
    "startingoffsets": "latest",
    "endingoffsets": "earliest",
    "startingTimestamp": "1970-01-01T00:00:01",
    "endingTimestamp": "2000",
    "columns": "tags, body",
    "minPartitions": "8",
    "maxRowsPerPartition": "5000",
    "failOnDataLoss": "FALSE",
    "verifycrc": "True",
    "pullBatchSize": "1024",
    "pullTimeoutMs": "5000",
    "pullsUnderWay": "4",
    "retryTimeoutMs": "1000",
    "maxBodyBytes": "1024",
    "accessKey": "me",
    "secretKey": "hidden",
    "securityToken": "hidden too",
    "tls": "true",
    "tlsTrust": "/ca.pem",
    "tlsCertificate": "/me.pem",
    "tlsKey": "/me.key",
    "tlsVerify": "true",
    "tlsCheckHost": "false",
    "maxOffsetsPerTrigger": "100",
    "minOffsetsPerTrigger": "10",
    "maxTriggerDelayMs": "60000",
    "commitOffsets": "true",
    "pushdown": "true",
}


def test_every_option_has_a_value_in_any_case() -> None:
    assert {name.lower() for name in TEXTS} == {name.lower() for name in SparkOptions.names("topic batch")} - {"tags"}
    options = LiveOptions.of(TEXTS)
    read, config = options.read(options.columns), options.client_config()
    request = read.request
    assert (read.start, read.end, read.queue_ids, read.min_partitions, read.max_rows) == (
        "latest",
        "earliest",
        (0, 3),
        8,
        5000,
    )
    assert (request.group, request.tags, request.sql, request.columns) == ("lake", "A || B", "a > 1", ("tags", "body"))
    assert (request.keys, request.verify_crc) == (("a,b", "c"), True)
    assert (request.start_time, request.end_time, request.on_damage) == (1000, 2000, "warn")
    assert (request.batch, request.timeout, request.depth, request.patience) == (1024, 5.0, 4, 1.0)
    assert (config.name_servers, config.access_key) == (("10.0.0.1:9876", "10.0.0.2:9876"), "me")
    assert config.tls is not None
    assert (str(config.tls.trust), str(config.tls.certificate), config.tls.check_host) == ("/ca.pem", "/me.pem", False)
    assert options.pushdown
    assert (options.max_offsets_per_trigger, options.min_offsets_per_trigger) == (100, 10)
    for shown in (options, read, config):
        assert "hidden" not in repr(shown)


def test_a_stream_begins_with_what_comes_unless_it_is_told_otherwise() -> None:
    for name, text, start in (
        ("group", "lake", "latest"),
        ("startingTimestamp", "5", "earliest"),
        ("startingOffsets", "earliest", "earliest"),
    ):
        assert LiveOptions.of({**NEEDED, name: text}).read(None, default_start="latest").start == start
    assert LiveOptions.of(NEEDED).read(None).start == "earliest"
