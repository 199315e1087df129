"""`rmqfast store scan --decode`: bodies as a column, in every form; bad bodies on standard error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import run
from tests.reference.writer import Message, Options, write_store

DDL = (
    "id bigint, at timestamp, day date, amount decimal(6,2), lines array<struct<sku: string, n: int>>, "
    "props map<string, double>, raw binary"
)
BODY = (
    b'{"id":1,"at":"2026-11-29T00:00:00.5Z","day":"2026-11-29","amount":1.5,"lines":[{"sku":"a"},null],'
    b'"props":{"x":1e400,"y":0.5},"raw":"00ff"}'
)
VALUE = {
    "id": 1,
    "at": 1_795_910_400_500,
    "day": "2026-11-29",
    "amount": "1.50",
    "lines": [{"sku": "a", "n": None}, None],
    "props": {"x": "inf", "y": 0.5},
    "raw": "AP8=",
}
EMPTY = dict.fromkeys(VALUE)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    bodies = [BODY, b"{}", b'{"day":2147483647,"at":9223372036854775807}', BODY]
    return write_store(tmp_path / "store", [Message("T", body) for body in bodies], Options()).path


def test_json_lines_have_the_value_as_json(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "orders.ddl"
    file.write_text(DDL)
    # longer than a file's name can be
    long = DDL + "".join(f", f{n} string" for n in range(100))
    assert run("store", "scan", store, "--decode", "json", "--schema", long, "-o", "csv").exit_code == 0
    for schema in (DDL, str(file)):
        done = run("store", "scan", store, "--decode", "json", "--schema", schema, "-o", "jsonl")
        assert done.exit_code == 0, done.stderr
        values = [json.loads(line)["value"] for line in done.stdout.splitlines()]
        assert [values[0], values[1], values[3]] == [VALUE, EMPTY, VALUE]
        # a year that Python does not have
        assert values[2]["at"] == 9_223_372_036_854_775


def test_chosen_fields_stand_last(store: Path) -> None:
    options = ("--decode", "json", "--schema", DDL, "--columns", "value.id,queue_offset,value.day", "--limit", "1")
    done = run("store", "scan", store, *options, "-o", "jsonl")
    assert json.loads(done.stdout) == {"queue_offset": 0, "value": {"id": 1, "day": "2026-11-29"}}
    assert "id=1 day=2026-11-29" in run("store", "scan", store, *options).stdout
    csv = run("store", "scan", store, *options, "-o", "csv").stdout.splitlines()
    assert csv[0] == "queue_offset,value"


def test_a_table_has_values_in_place_of_bodies(store: Path) -> None:
    header = run("store", "scan", store, "--decode", "json", "--schema", "id bigint").stdout.splitlines()[0].split()
    assert header == ["topic", "queue_id", "queue_offset", "store_timestamp", "tags", "keys", "value"]


def test_bad_bodies_are_told_and_end_with_1(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", [Message("T", b"nope")] * 7 + [Message("T", b"{}")], Options()).path
    options = ("store", "scan", store, "--decode", "json", "--schema", "id bigint", "--columns", "value", "-o", "jsonl")
    done = run(*options)
    assert (done.exit_code, done.stdout) == (1, '{"value":null}\n' * 7 + '{"value":{"id":null}}\n')
    lines = done.stderr.splitlines()
    assert lines[0] == "7 bodies could not be decoded"
    assert lines[1] == "  topic T queue 0 offset 0: expected a JSON object at byte 0, got 'n'"
    assert len(lines) == 6
    failed = run(*options, "--on-error", "fail")
    assert failed.exit_code == 1
    assert "body of message 0 of queue 0 of topic T" in failed.stderr
    wrong = run(*options[:-4], "--framing", "confluent", "--schema", "id strng")
    assert wrong.exit_code == 2
    assert "got 'strng' at position 3" in wrong.stderr
