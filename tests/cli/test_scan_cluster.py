"""`rmqfast scan`: prints of a cluster what `rmqfast store scan` prints of its stores, by the same options."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from rmqfast.store import COLUMNS
from tests.cli.command_line import run
from tests.client.ranges.clusters import RestartableCluster
from tests.spark.live import topics
from tests.spark.live.topics import MESSAGES, LiveCluster

Row = dict[str, Any]


def of_cluster(live: LiveCluster, *words: str) -> list[Row]:
    result = run("scan", "orders", "-n", live.name_server, "-o", "jsonl", *words)
    assert result.exit_code == 0, result.stderr
    return by_place(result.stdout)


def of_stores(live: LiveCluster, *words: str) -> list[Row]:
    texts = [
        run("store", "scan", path, "--topic", "orders", "-o", "jsonl", *words).stdout
        for path in topics.stores(live.directory).values()
    ]
    return by_place("".join(texts))


def by_place(lines: str) -> list[Row]:
    rows = [json.loads(line) for line in lines.splitlines()]
    for row in rows:
        # a store does not know it
        row.pop("broker_name", None)
    return sorted(rows, key=json.dumps)


OPTIONS = [
    (),
    ("--tags", "paid || Aa", "--queue", "1", "--queue", "3"),
    ("--sql", "number > 100 AND region = 'eu'"),
    ("--keys", "key-1", "--keys", "key-100"),
    ("--start-offset", "3", "--end-offset", "7"),
    ("--start-time", "2001-01-01", "--end-time", "2100-01-01", "--verify-crc", "--threads", "2"),
    ("--end-time", "2001-01-01"),
]


@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
def test_the_same_options_choose_the_same_messages(live_cluster: LiveCluster, words: tuple[str, ...]) -> None:
    rows = of_cluster(live_cluster, *words)
    assert rows == of_stores(live_cluster, *words)
    assert bool(rows) == ("2001-01-01" not in words[-1:])


@pytest.mark.parametrize("via", ["log", "auto"])
def test_messages_come_in_each_way(live_cluster: LiveCluster, via: str) -> None:
    assert of_cluster(live_cluster, "--via", via) == of_cluster(live_cluster)


def test_a_mirror_needs_its_path(live_cluster: LiveCluster, tmp_path: Path) -> None:
    command = ("scan", "orders", "-n", live_cluster.name_server, "--via", "mirror")
    result = run(*command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "mirror_path" in result.stderr
    other = run(*command, "--mirror-path", str(tmp_path))
    assert (other.exit_code, other.stdout) == (2, "")
    assert str(tmp_path) in other.stderr


def test_both_commands_have_the_same_options() -> None:
    def options(*command: str) -> set[str]:
        return set(re.findall(r"--[a-z-]+", run(*command, "--help").stdout.partition("Examples:")[0]))

    of_the_store = options("store", "scan") - {"--topic", "--commit-log-dir"}
    assert of_the_store < options("scan")


@pytest.mark.parametrize("form", ["json", "csv", "table"])
def test_each_form_has_the_columns(live_cluster: LiveCluster, form: str) -> None:
    command = ("scan", "orders", "-n", live_cluster.name_server, "--limit", "4", "-o", form)
    output = run(*command, "--columns", "tags,queue_id").stdout
    if form == "json":
        assert [list(row) for row in json.loads(output)] == [["tags", "queue_id"]] * 4
        assert list(json.loads(run(*command).stdout)[0]) == list(COLUMNS)
    elif form == "csv":
        assert [list(row) for row in csv.DictReader(io.StringIO(output))] == [["tags", "queue_id"]] * 4
    else:
        assert output.split()[:2] == ["tags", "queue_id"]


def test_all_topics_of_users_are_printed(live_cluster: LiveCluster) -> None:
    result = run("scan", "-n", live_cluster.name_server, "--columns", "topic", "-o", "jsonl")
    assert result.stdout.splitlines() == ['{"topic":"orders"}'] * MESSAGES


@pytest.mark.parametrize("limit", [0, 3])
def test_a_limit_is_of_rows(live_cluster: LiveCluster, limit: int) -> None:
    result = run("scan", "orders", "-n", live_cluster.name_server, "--limit", str(limit), "-o", "jsonl")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, limit)


def test_what_is_wrong_is_one_line(live_cluster: LiveCluster) -> None:
    cases: list[tuple[list[str], int, str]] = [
        (
            ["order", "-n", live_cluster.name_server],
            2,
            "unknown topic 'order' at the name server; did you mean orders?",
        ),
        (["orders", "-n", live_cluster.name_server, "--columns", "bdy"], 2, "unknown column 'bdy'"),
        (["orders", "-n", live_cluster.name_server, "--tags", "||"], 2, "as in --tags 'paid || shipped'"),
        (
            ["orders", "-n", live_cluster.name_server, "--queue", "9"],
            2,
            "no queue 9; the topic's queues are 0, 1, 2, 3",
        ),
        (["orders", "-n", "127.0.0.1:1"], 3, "no name server answers"),
    ]
    for words, code, text in cases:
        result = run("scan", *words)
        assert (result.exit_code, result.stdout) == (code, ""), result.stderr
        assert text in result.stderr
        assert result.stderr.count("\n") == 1
        assert "store info" not in result.stderr


def test_losses_are_told_and_what_is_left_is_printed(tmp_path: Path) -> None:
    with RestartableCluster(tmp_path / "store", fileReservedTime="0") as cluster:
        cluster.create("orders")
        cluster.fill("orders", 100)
        _corrupt(tmp_path / "store")
        result = run(
            "scan", "orders", "-n", cluster.name_server, "--verify-crc", "--columns", "queue_offset", "-o", "csv"
        )
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 1 + 99
    assert result.stderr.startswith("damage: 1 bodies do not match their CRC: topic orders, broker broker-a, queue 0, ")


def _corrupt(store: Path) -> None:
    """Changes a byte of the first body."""
    [log] = (store / "commitlog").iterdir()
    with log.open("r+b") as file:
        place = file.read(1 << 16).index(bytes(900)) + 100
        file.seek(place)
        file.write(b"x")
