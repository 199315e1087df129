"""What options ask of a cluster; what each text means is in `tests/spark/test_requests.py`."""

from __future__ import annotations

import pickle

import pytest

from rmqfast._native import SparkOptions, TopicRead
from rmqfast.errors import ArgumentError

#: Which topics; a read has one of them.
TOPICS = {
    "Topic": " orders ",
    "subscribe": "orders, bills",
    "subscribepattern": "orders-.*",
    "assign": '{"orders": {"broker-a": [0]}}',
}
TEXTS = {
    "NAMESERVER": "10.0.0.1:9876;10.0.0.2:9876",
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
    "propertyNames": "color, traceId",
    "minPartitions": "8",
    "maxRowsPerPartition": "5000",
    "failOnDataLoss": "FALSE",
    "verifycrc": "True",
    "pullBatchSize": "1024",
    "pullTimeoutMs": "5000",
    "pullsInFlight": "4",
    "retryTimeoutMs": "1000",
    "via": "mirror",
    "mirrorPath": "/copies",
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


VALUES = {
    "name_server": "10.0.0.1:9876;10.0.0.2:9876",
    "topic": "orders",
    "group": "lake",
    "tags": "A || B",
    "sql": "a > 1",
    "keys": ("a,b", "c"),
    "queue_ids": (0, 3),
    "starting_offsets": "latest",
    "ending_offsets": "earliest",
    "start_time": 1000,
    "end_time": 2000,
    "columns": ("tags", "body"),
    "property_names": ("color", "traceId"),
    "min_partitions": 8,
    "max_rows_per_partition": 5000,
    "fail_on_data_loss": False,
    "verify_crc": True,
    "pull_batch_size": 1024,
    "pull_timeout_ms": 5000,
    "pulls_in_flight": 4,
    "retry_timeout_ms": 1000,
    "via": "mirror",
    "mirror_path": "/copies",
    "max_body_bytes": 1024,
    "access_key": "me",
    "secret_key": "hidden",
    "security_token": "hidden too",
    "tls": True,
    "tls_trust": "/ca.pem",
    "tls_certificate": "/me.pem",
    "tls_key": "/me.key",
    "tls_verify": True,
    "tls_check_host": False,
    "max_offsets_per_trigger": 100,
    "min_offsets_per_trigger": 10,
    "max_trigger_delay_ms": 60000,
    "commit_offsets": True,
    "pushdown": True,
}


def test_every_option_has_a_value_in_any_case() -> None:
    names = {name.lower() for name in SparkOptions.names("topic batch")}
    assert {name.lower() for name in TEXTS | TOPICS} == names - {"tags"}
    values = SparkOptions("topic batch", TEXTS | {"Topic": TOPICS["Topic"]}).values
    assert values == VALUES | {"subscribe": None, "subscribe_pattern": None, "assign": None}


@pytest.mark.parametrize("name", TOPICS)
def test_a_read_says_its_topics_in_one_way(name: str) -> None:
    options = {"nameServer": "10.0.0.1:9876", name: TOPICS[name]}
    TopicRead("topic batch", options, ["tags"])
    other = "topic" if name == "assign" else "assign"
    with pytest.raises(
        ArgumentError, match="options topic, subscribe, subscribePattern, assign: expected one of them, g"
    ):
        TopicRead("topic batch", options | {other: TOPICS["assign"]}, ["tags"])


def test_a_read_that_goes_to_a_task_shows_no_secret() -> None:
    options = {"nameServer": "10.0.0.1:9876", "topic": "orders", "accessKey": "me", "secretKey": "hidden"}
    read = pickle.loads(pickle.dumps(TopicRead("topic batch", options, ["tags"])))  # noqa: S301
    assert "hidden" not in repr(read)
