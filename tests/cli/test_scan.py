"""`rmqfast store scan`: its rows are those of RocketMQ's own classes, in every form."""

from __future__ import annotations

import base64
import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rmqfast.store import COLUMNS
from tests import golden_stores
from tests.cli.command_line import run
from tests.golden_stores import PathOf


def rows(output: str) -> list[dict[str, Any]]:
    """JSON lines as rows of the golden stores: bodies as bytes."""
    found = [json.loads(line) for line in output.splitlines()]
    for row in found:
        row["body"] = base64.b64decode(row["body"])
    return found


@pytest.mark.parametrize("name", ["basic-4.9.4", "delaytx-5.3.3"])
def test_json_lines_are_what_rocketmq_reads(name: str, golden_store: PathOf) -> None:
    result = run("store", "scan", golden_store(name), "-o", "jsonl")
    assert result.exit_code == 0, result.stderr
    assert not list(golden_stores.differences(rows(result.stdout), golden_stores.expected_rows(name)))


def test_the_columns_of_json_are_those_of_the_row_in_their_order(golden_store: PathOf) -> None:
    result = run("store", "scan", golden_store("offsets-4.9.4"), "--limit", "1", "-o", "jsonl")
    assert list(json.loads(result.stdout)) == list(COLUMNS)


def test_tags_are_compared_exactly_though_their_hashes_are_equal(golden_store: PathOf) -> None:
    arguments = ("store", "scan", golden_store("basic-4.9.4"), "--topic", "fx_q1", "-o", "jsonl", "--tags")
    wanted = [r for r in golden_stores.expected_rows("basic-4.9.4") if r["topic"] == "fx_q1" and r["tags"] == "Aa"]
    assert not list(golden_stores.differences(rows(run(*arguments, "Aa").stdout), wanted))
    assert wanted


def test_every_filter_reaches_the_scan(golden_store: PathOf) -> None:
    every = [r for r in golden_stores.expected_rows("basic-4.9.4") if r["topic"] == "fx_q4"]
    middle = every[len(every) // 2]["store_timestamp"]
    keyed = next(r["keys"].split()[0] for r in every if r["keys"])
    cases: list[tuple[list[str], Callable[[dict[str, Any]], bool]]] = [
        (["--queue", "1", "--queue", "3"], lambda r: r["queue_id"] in {1, 3}),
        (["--start-offset", "10", "--end-offset", "20"], lambda r: 10 <= r["queue_offset"] < 20),
        (["--start-time", str(middle)], lambda r: r["store_timestamp"] >= middle),
        (["--end-time", str(middle)], lambda r: r["store_timestamp"] < middle),
        (["--keys", keyed], lambda r: keyed in (r["keys"] or "").split()),
        (["--sql", "color = 'red'"], lambda r: r["properties"].get("color") == "red"),
        (["--verify-crc", "--threads", "2"], lambda _: True),
    ]
    for arguments, is_wanted in cases:
        more = ("--topic", "fx_q4", "--columns", "physical_offset", "-o", "csv", *arguments)
        found = run("store", "scan", golden_store("basic-4.9.4"), *more).stdout.split()[1:]
        wanted = [r["physical_offset"] for r in every if is_wanted(r)]
        assert sorted(map(int, found)) == wanted, arguments


def test_json_is_one_array_and_csv_reads_back_to_the_same_rows(golden_store: PathOf) -> None:
    command = ("store", "scan", golden_store("basic-5.3.3"), "-o")
    lines = [json.loads(line) for line in run(*command, "jsonl").stdout.splitlines()]
    assert json.loads(run(*command, "json").stdout) == lines
    csv.field_size_limit(1 << 20)
    table = list(csv.DictReader(io.StringIO(run(*command, "csv").stdout)))
    assert len(table) == len(lines)
    for row, line in zip(table, lines, strict=True):
        assert json.loads(row.pop("properties")) == line.pop("properties")
        assert {k: unguarded(v) for k, v in row.items()} == {k: "" if v is None else str(v) for k, v in line.items()}


def unguarded(cell: str) -> str:
    """A cell without the apostrophe that keeps spreadsheets from running it."""
    return cell[1:] if cell.startswith(("'=", "'+", "'-", "'@")) else cell


def test_no_rows_are_an_empty_array_and_a_header(golden_store: PathOf) -> None:
    command = ("store", "scan", golden_store("basic-4.9.4"), "--topic", "fx_q1", "--limit", "0", "-o")
    assert json.loads(run(*command, "json").stdout) == []
    assert not run(*command, "jsonl").stdout
    assert run(*command, "csv").stdout.strip() == ",".join(COLUMNS)
    assert run(*command, "table").stdout.split()[:2] == ["topic", "queue_id"]


@pytest.mark.parametrize("limit", [1, 7, 500])
def test_limit_takes_the_first_rows(limit: int, golden_store: PathOf) -> None:
    command = (
        "store",
        "scan",
        golden_store("basic-4.9.4"),
        "--topic",
        "fx_q1",
        "--columns",
        "queue_offset",
        "-o",
        "csv",
    )
    assert run(*command, "--limit", str(limit)).stdout == "".join(
        run(*command).stdout.splitlines(keepends=True)[: limit + 1]
    )


def test_a_table_has_a_line_for_each_row_and_no_control_characters(golden_store: PathOf) -> None:
    lines = run("store", "scan", golden_store("basic-4.9.4")).stdout.splitlines()
    assert len(lines) == 1 + len(golden_stores.expected_rows("basic-4.9.4"))
    assert all(character.isprintable() for line in lines for character in line)


def test_damage_is_told_on_standard_error_and_by_the_exit_code(golden_store: PathOf) -> None:
    result = run("store", "scan", golden_store("damaged-4.9.4"), "-o", "jsonl")
    assert result.exit_code == 1
    assert result.stderr.startswith("damage in 1 place, 24,117 bytes not read\n")
    assert "commitlog/00000000000001048576 offset 1508364" in result.stderr
    assert not list(golden_stores.differences(rows(result.stdout), golden_stores.expected_rows("damaged-4.9.4")))


def test_the_commit_log_may_be_elsewhere(golden_store_copy: PathOf, tmp_path: Path) -> None:
    store = golden_store_copy("offsets-4.9.4")
    before = run("store", "scan", store, "-o", "jsonl").stdout
    (store / "commitlog").rename(tmp_path / "elsewhere")
    assert run("store", "scan", store, "--commit-log-dir", tmp_path / "elsewhere", "-o", "jsonl").stdout == before


WRONG = [
    (["--topic", "fx_q"], "unknown topic 'fx_q'; did you mean fx_q1"),
    (["--topic", "fx_q"], "`rmqfast store info DIR` lists the topics"),
    (["--topic", "fx_q1", "--columns", "bdy"], "unknown column 'bdy'; the columns are topic"),
    (["--topic", "fx_q1", "--sql", "a >> 3"], "at position 3"),
    (["--topic", "fx_q1", "--start-time", "yesterday"], "expected ISO 8601"),
    (["--topic", "fx_q1", "--columns", "body,body"], "expected each once"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: list[str], words: str, golden_store: PathOf) -> None:
    result = run("store", "scan", golden_store("basic-4.9.4"), *arguments)
    assert result.exit_code == 2
    assert not result.stdout
    assert len(result.stderr.splitlines()) == 1
    assert words in result.stderr


def test_an_unknown_command_or_option_is_exit_code_2() -> None:
    assert run("store", "scn").exit_code == 2
    assert run("store", "scan", "--colour", "red").exit_code == 2
    assert run("store", "scan", "x", "-o", "xml").exit_code == 2


def test_no_store_at_all_is_exit_code_3(tmp_path: Path) -> None:
    missing = run("store", "scan", tmp_path / "missing")
    assert (missing.exit_code, missing.stderr) == (3, f"error: {tmp_path}/missing: no such file or directory\n")
    assert run("store", "scan", tmp_path).exit_code == 3


def test_control_characters_of_an_argument_do_not_reach_the_terminal(golden_store: PathOf) -> None:
    result = run("store", "scan", golden_store("basic-4.9.4"), "--topic", "fx\x1b[2J\nq1")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr


def test_an_explanation_is_printed_in_place_of_messages(golden_store: PathOf) -> None:
    arguments = ("store", "scan", golden_store("basic-4.9.4"), "--topic", "fx_q1", "--tags", "TagA", "--explain")
    text = run(*arguments)
    assert text.exit_code == 0, text.stderr
    assert text.stdout.startswith("messages:  about ")
    assert "\nfilter:    tags: the hash of the tag in the queue; " in text.stdout
    values = json.loads(run(*arguments, "-o", "json", "--limit", "3").stdout)
    assert (values["limit"], values["pieces"][0]["way"]) == (3, "queue")
    assert values["log_bytes"] == sum(piece["log_bytes"] for piece in values["pieces"])
    refused = run(*arguments, "-o", "csv")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--explain: expected -o table or json, got csv" in refused.stderr


def test_the_stores_of_several_brokers_are_one(golden_store: PathOf, tmp_path: Path) -> None:
    names = {"broker-a": "basic-4.9.4", "broker-b": "offsets-4.9.4"}
    for name, golden in names.items():
        shutil.copytree(golden_store(golden), tmp_path / name)
    expected = {name: golden_stores.expected_rows(golden) for name, golden in names.items()}
    wanted = [row | {"broker_name": name} for name, of_broker in expected.items() for row in of_broker]
    for directory in (tmp_path, tmp_path / "broker-*"):
        result = run("store", "scan", directory, "-o", "jsonl")
        assert result.exit_code == 0, result.stderr
        assert not list(golden_stores.differences(rows(result.stdout), wanted))
    table = run("store", "scan", tmp_path, "--topic", "fx_plain", "--limit", "1")
    assert table.stdout.split()[:2] == ["broker_name", "topic"]
    told = run("store", "info", tmp_path)
    assert (told.exit_code, told.stdout) == (3, "")
    assert "the stores of broker-a, broker-b are in it: name one" in told.stderr
    assert (
        "commit_log_dirs: expected none with several stores"
        in run("store", "scan", tmp_path, "--commit-log-dir", tmp_path).stderr
    )


def test_bodies_that_cannot_be_decoded_are_named_by_their_broker(golden_store: PathOf, tmp_path: Path) -> None:
    shutil.copytree(golden_store("offsets-4.9.4"), tmp_path / "broker-a")
    result = run("store", "scan", tmp_path, "--topic", "fx_plain", "--decode", "json", "--schema", "a int")
    assert result.exit_code == 1
    assert "  broker broker-a topic fx_plain queue 3 offset 0: " in result.stderr
