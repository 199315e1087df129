"""Arguments of a scan of a cluster that are refused, and the words of the refusal."""

from __future__ import annotations

import copy
import logging
import pickle
from typing import Any

import pytest

import rmqfast
from rmqfast import errors
from rmqfast.client.instance import ClientConfig
from tests.cluster.rows import rows_of, stored_rows
from tests.spark.live.topics import LiveCluster

pytestmark = pytest.mark.slow

REFUSED: dict[str, tuple[dict[str, Any], type[errors.RmqError], str]] = {
    "topic": ({"topic": "order"}, errors.UnknownTopicError, "unknown topic 'order' at the name server; did you mean "),
    # name servers do not list light queues
    "light queue": ({"topic": "%LMQ%light"}, errors.UnknownTopicError, "unknown topic '%LMQ%light' at the name server"),
    "topic's name": ({"topic": "a b"}, errors.ClientError, "The specified topic[a b] contains illegal characters"),
    "column": ({"columns": ["bdy"]}, errors.UnknownColumnError, "unknown column 'bdy'; the columns are "),
    "tags": ({"tags": "||"}, errors.ExpressionError, "subString split error: expected a tag beside '||'"),
    "sql": ({"sql": "a >"}, errors.ExpressionError, "expected a property, a value"),
    "queue": ({"queue_ids": 9}, errors.ArgumentError, "queue_ids: no queue 9; the topic's queues are 0, 1, 2, 3"),
    "argument": ({"tag": "paid"}, errors.ArgumentTypeError, "unexpected keyword argument 'tag': did you mean tags?"),
    "argument of stores": (
        {"way": "log"},
        errors.ArgumentTypeError,
        "unexpected keyword argument 'way': expected queue_ids, ",
    ),
    "damage": ({"on_damage": "skip"}, errors.ArgumentError, "on_damage: expected 'warn' or 'fail', got 'skip'"),
    "threads": ({"threads": 0}, errors.ArgumentError, "threads: expected 1 or more, got 0"),
    "via": ({"via": "pigeon"}, errors.ArgumentError, "via: expected pull, log, auto or mirror, got 'pigeon'"),
    "mirror": (
        {"via": "mirror"},
        errors.ArgumentError,
        "mirror_path: expected the directory of rmqfast mirror with via=mirror, and only with it; got none",
    ),
    "mirror of pulls": (
        {"mirror_path": "/x"},
        errors.ArgumentError,
        "mirror_path: expected the directory of rmqfast mirror with via=mirror, and only with it; got '/x'",
    ),
    "copy": (
        {"via": "mirror", "mirror_path": "/nowhere"},
        errors.ArgumentError,
        "mirror_path: expected a copy of broker-a below /nowhere, got none",
    ),
    "properties": (
        {"property_names": []},
        errors.ArgumentError,
        "property_names: expected at least one name, got none",
    ),
    "time": ({"start_time": "noon"}, errors.ArgumentError, "start_time: expected ISO 8601"),
    "broker": (
        {"start_offset": {"broker-c": {0: 1}}},
        errors.ArgumentError,
        "start_offset: topic orders: no broker broker-c; the topic's brokers are broker-a, broker-b",
    ),
    "broker's queue": (
        {"end_offset": {"broker-a": {4: 1}}},
        errors.ArgumentError,
        "end_offset: topic orders: no queue 4 on broker broker-a; its queues are 0, 1, 2, 3",
    ),
    "offset's queue": ({"end_offset": {4: 1}}, errors.ArgumentError, "end_offset: topic orders: no queue 4 on broker"),
    "beyond the end": (
        {"end_offset": {"broker-a": {1: 151}}},
        errors.DataLossError,
        "end_offset: topic orders, broker broker-a, queue 1: offset 151 is not there yet, the queue has 0 to 150",
    ),
    "start beyond the end": (
        {"start_offset": {1: 1000}},
        errors.DataLossError,
        "start_offset: topic orders, broker broker-a, queue 1: offset 1000 is not there yet",
    ),
    "order": (
        {"start_offset": {1: 20}, "end_offset": {1: 10}},
        errors.ArgumentError,
        "start_offset: topic orders, broker broker-a, queue 1: expected 10 at most, which end_offset says, got 20",
    ),
    "word": ({"start_offset": "first"}, errors.ArgumentTypeError, "start_offset: expected 'earliest', 'latest', an "),
    "negative offset": ({"start_offset": -3}, errors.ArgumentError, "start_offset: expected -2 or more, got -3"),
    "negative offset of a queue": (
        {"start_offset": {0: -3}},
        errors.ArgumentError,
        "start_offset: queue 0: expected an offset, -1 (latest) or -2 (earliest), got -3",
    ),
    "offsets without their topic": (
        {"topic": None, "start_offset": {0: 3}},
        errors.ArgumentError,
        "start_offset: expected offsets below the names of topics, got {0: 3} for all topics",
    ),
    "offsets below another topic": (
        {"topic": ["orders"], "start_offset": {"broker-a": {0: 3}}},
        errors.ArgumentError,
        "start_offset: 'broker-a' is not read; expected offsets of topic orders as ",
    ),
    "fraction": ({"start_offset": 1.5}, errors.ArgumentTypeError, "start_offset: expected "),
}


@pytest.mark.parametrize(("arguments", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_the_call_refuses(
    live_cluster: LiveCluster, arguments: dict[str, Any], error: type[errors.RmqError], text: str
) -> None:
    cluster = rmqfast.open_cluster(live_cluster.name_server)
    with pytest.raises(error) as caught:
        cluster.scan(**{"topic": "orders", **arguments})
    assert text in str(caught.value)
    assert "Offsets" not in str(caught.value)


OPENED: dict[str, tuple[dict[str, Any], str]] = {
    "name server": ({}, "name_server: expected host:port, got none: pass it, or set NAMESRV_ADDR"),
    "pulls": ({"pull_batch_size": 0}, "pull_batch_size: expected "),
    "time": ({"retry_timeout": -1}, "retry_timeout: expected "),
    "group": ({"group": "a b"}, "the specified group[a b] contains illegal characters"),
    "argument": ({"groop": "a"}, "unexpected keyword argument 'groop': did you mean group?"),
}


@pytest.mark.parametrize(("arguments", "text"), OPENED.values(), ids=OPENED)
def test_opening_refuses(arguments: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    given = arguments if not arguments else {"name_server": "127.0.0.1:1", **arguments}
    with pytest.raises(errors.RmqError) as caught:
        rmqfast.open_cluster(**given)
    assert text in str(caught.value)


def test_a_name_server_comes_from_the_environment_or_the_settings(
    live_cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ClientConfig(name_server=live_cluster.name_server)
    with rmqfast.open_cluster(config=config) as cluster:
        assert cluster.scan("orders").count() == 1200
    monkeypatch.setenv("NAMESRV_ADDR", live_cluster.name_server)
    assert rmqfast.open_cluster().scan("orders").count() == 1200
    assert repr(rmqfast.open_cluster()) == f"MessageCluster('{live_cluster.name_server}')"


def test_a_cluster_is_a_value(live_cluster: LiveCluster) -> None:
    cluster = rmqfast.open_cluster(live_cluster.name_server, group="audit")
    for copied in (pickle.loads(pickle.dumps(cluster)), copy.deepcopy(cluster)):  # noqa: S301 - written here
        assert copied.topics() == cluster.topics()
        assert (copied.config, repr(copied)) == (cluster.config, repr(cluster))


def test_nobody_answers_at_the_name_server() -> None:
    cluster = rmqfast.open_cluster("127.0.0.1:1")
    for ask in (cluster.topics, lambda: cluster.scan("orders")):
        with pytest.raises(errors.ClientError, match="no name server answers"):
            ask()


def test_offsets_beyond_the_ends_are_the_ends_if_loss_is_allowed(
    live_cluster: LiveCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = rmqfast.open_cluster(live_cluster.name_server)
    end = {"broker-a": {0: 10_000}, "broker-b": {0: 0, 1: 0, 2: 0, 3: 0}}
    scan = cluster.scan("orders", start_offset={1: -1, 2: -1, 3: -1}, end_offset=end, on_damage="warn")
    assert scan.count() == 150
    [record] = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert record.name == "rmqfast.cluster"
    assert "broker-a, queue 0: offset 10000 is not there yet, the queue has 0 to 150" in record.getMessage()


def test_one_number_beyond_the_ends_is_no_message_as_in_a_store(live_cluster: LiveCluster) -> None:
    cluster = rmqfast.open_cluster(live_cluster.name_server)
    chosen: tuple[dict[str, Any], ...] = (
        {"start_offset": 10_000},
        {"end_offset": 0},
        {"end_offset": 10_000, "start_offset": 140},
    )
    for arguments in chosen:
        assert rows_of(cluster.scan("orders", **arguments)) == stored_rows(live_cluster.directory, **arguments)
