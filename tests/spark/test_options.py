"""Texts of options to values; what is misspelt or out of range says what it may be. No Spark is needed for this."""

from __future__ import annotations

import json

import pytest

from rmqfast.errors import ArgumentError, CorruptError
from rmqfast.spark.offsets import check_not_expired, offset_bounds, parse_offsets
from rmqfast.spark.options import OPTION_NAMES, SourceOptions

QUEUES = {0: (5, 20), 1: (0, 7)}
REFUSED = {
    "topik": ("a", "unknown option topik; did you mean topic"),
    "zzz": ("a", "the options are storePath, path, topic"),
    "nameServer": ("127.0.0.1:9876", "option nameServer: is a live cluster's; this source reads a store directory"),
    "PULLBATCHSIZE": ("32", "option pullBatchSize: is a live cluster's"),
    "topic": ("a,b", "expected one topic, or no such option for all of them, got 'a,b'"),
    "tags": (" ", "option tags: expected a text, got ' '"),
    "queueIds": ("0,x", "option queueIds: expected a number from 0 to 2147483647, got 'x'"),
    "minPartitions": ("0", "option minPartitions: expected a number from 1 to 1000000, got '0'"),
    "partitionBytes": ("64m", "option partitionBytes: expected a number from 1"),
    "maxBodyBytes": (str(1 << 31), "option maxBodyBytes: expected a number from 1 to 1073741824"),
    "failOnDataLoss": ("no", "option failOnDataLoss: expected true or false, got 'no'"),
    "verifyCrc": ("1", "option verifyCrc: expected true or false, got '1'"),
    "startingTimestamp": ("noon", "option startingTimestamp: time: expected ISO 8601"),
    "columns": ("tags,,body", "option columns: expected words between commas, or a JSON array"),
    "keys": ('["a"', "option keys: expected a JSON array"),
    "io": ("aio", "option io: expected pread or mmap, got 'aio'"),
    "path": ("/other", "option path: given twice, the other time as its alias"),
}


@pytest.mark.parametrize(("name", "text", "message"), [(n, *rest) for n, rest in REFUSED.items()], ids=REFUSED)
def test_what_is_no_option_or_no_value_says_what_is(name: str, text: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        SourceOptions.of({"storePath": "/data/store", name: text})
    assert message in str(caught.value)


def test_an_end_before_the_start_is_refused() -> None:
    times = {"endingTimestamp": "1000", "startingTimestamp": "1970-01-01T00:00:02"}
    with pytest.raises(
        ArgumentError, match="option endingTimestamp: expected option startingTimestamp, 2000, or later"
    ):
        SourceOptions.of({"storePath": "/data/store"} | times)


def test_without_a_store_there_is_nothing_to_read() -> None:
    with pytest.raises(ArgumentError, match=r"option storePath: .* got none"):
        SourceOptions.of({"topic": "orders"})


def test_every_option_has_a_value_in_any_case() -> None:
    texts = {
        "STOREPATH": "/data/store",
        "Topic": " orders ",
        "subexpression": "A || B",
        "SQL": "a > 1",
        "keys": '["a,b", "c"]',
        "queueids": "[0, 3]",
        "startingoffsets": "latest",
        "endingOFFSETS": "earliest",
        "startingTimestamp": "1970-01-01T00:00:01",
        "endingTimestamp": "2000",
        "columns": "tags, body",
        "minPartitions": "8",
        "partitionBytes": "65536",
        "failOnDataLoss": "FALSE",
        "verifyCrc": "true",
        "maxBodyBytes": "1024",
        "brokerName": "broker-a",
        "commitLogDirs": "/a,/b",
        "pushdown": "true",
        "maxBytesPerTrigger": "1000",
        "io": "mmap",
    }
    assert {name.lower() for name in texts} == {name.lower() for name in OPTION_NAMES} - {"path", "tags"}
    assert SourceOptions.of(texts) == SourceOptions(
        store_path="/data/store",
        topic="orders",
        tags="A || B",
        sql="a > 1",
        keys=("a,b", "c"),
        queue_ids=(0, 3),
        starting_offsets="latest",
        ending_offsets="earliest",
        starting_timestamp=1000,
        ending_timestamp=2000,
        columns=("tags", "body"),
        min_partitions=8,
        partition_bytes=65536,
        fail_on_data_loss=False,
        verify_crc=True,
        max_body_bytes=1024,
        broker_name="broker-a",
        commit_log_dirs=("/a", "/b"),
        pushdown=True,
        max_bytes_per_trigger=1000,
        io="mmap",
    )


def test_offsets_are_words_or_json_by_topic_broker_and_queue() -> None:
    assert parse_offsets("o", "Earliest", None, None) == "earliest"
    assert parse_offsets("o", "latest", None, None) == "latest"
    for broker in ("*", "broker-a"):
        text = json.dumps({"orders": {broker: {"0": 23, "1": -2}}})
        assert parse_offsets("o", text, "orders", "broker-a") == {0: 23, 1: -2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("first", "o: expected earliest, latest or JSON as"),
        ("[]", "o: expected one topic, 'orders', got []"),
        ('{"other": {}}', "o: expected one topic, 'orders', got ['other']"),
        ('{"orders": 3}', "o: expected an object below the topic, got 3"),
        ('{"orders": {"b": {"0": 1}}}', "o: expected one broker, '*' or 'broker-a', got ['b']"),
        ('{"orders": {"*": {"x": 1}}}', "o: expected a queue id as \"0\", got 'x'"),
        ('{"orders": {"*": {"0": -3}}}', "o: queue 0: expected an offset, -1 (latest) or -2 (earliest), got -3"),
        ('{"orders": {"*": {"0": true}}}', "o: queue 0: expected an offset"),
    ],
)
def test_other_offsets_are_refused(text: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        parse_offsets("o", text, "orders", "broker-a")
    assert message in str(caught.value)


def test_offsets_become_bounds_of_the_store_as_it_is() -> None:
    assert offset_bounds("o", "earliest", QUEUES, "start") == {}
    assert offset_bounds("o", "latest", QUEUES, "start") == {0: 20, 1: 7}
    assert offset_bounds("o", "latest", QUEUES, "end") == {}
    assert offset_bounds("o", "earliest", QUEUES, "end") == {0: 5, 1: 0}
    assert offset_bounds("o", {0: 9, 1: -1}, QUEUES, "start") == {0: 9, 1: 7}
    assert offset_bounds("o", {0: -2, 1: -1}, QUEUES, "end") == {0: 5}
    with pytest.raises(ArgumentError, match="o: no queue 7; the topic's queues are 0, 1"):
        offset_bounds("o", {7: 1}, QUEUES, "start")


def test_an_offset_before_the_first_that_is_left_has_expired() -> None:
    check_not_expired("o", {0: 5, 1: 0}, QUEUES)
    with pytest.raises(CorruptError, match="o: queue 0: offset 4 has expired, the queue begins at 5"):
        check_not_expired("o", {0: 4}, QUEUES)
