"""Damaged bytes, and bodies that cannot be decoded, are rows of a table of their own, each once and with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast import Message
from rmqfast.errors import ArgumentError
from rmqfast.tables.delta import DeltaTable
from rmqfast.tables.iceberg import IcebergTable
from rmqfast.tables.parquet_directory import ParquetDirectory
from tests.cli.command_line import run
from tests.reference.writer import Message as RawMessage
from tests.reference.writer import Options, write_store
from tests.tables.lakes import Lake
from tests.tables.stored_rows import SMALL, append, scanned

BODIES: dict[str, Any] = {"decode": "json", "schema": "id bigint"}


def errors_of(lake: Lake) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lake.read("messages__errors").to_pylist()
    return sorted(rows, key=lambda row: row["physical_offset"])


def append_bodies(path: Path, count: int, start: int = 0) -> None:
    """Appends messages. Every third body is no JSON object of the schema."""
    with rmqfast.open_store(path, mode="a", options=SMALL) as store:
        for number in range(start, start + count):
            body = b'{"id": "x%d"}' % number if number % 3 == 0 else b'{"id": %d}' % number
            store.append(Message("orders", body, queue_id=number % 2))


def test_bodies_that_cannot_be_decoded_are_errors_and_no_rows(tmp_path: Path, lake: Lake) -> None:
    store = tmp_path / "store"
    append_bodies(store, 900)
    written = lake.ingest(store, errors=True, **BODIES)
    assert (written.rows, written.errors, written.bad_bodies) == (600, 300, 0)
    assert [row["value"]["id"] % 3 for row in lake.rows()].count(0) == 0
    errors = errors_of(lake)
    assert [(row["kind"], row["reason"]) for row in errors] == [
        ("body", f'id: expected Int64, got "x{number}"') for number in range(0, 900, 3)
    ]
    assert [row["raw"] for row in errors] == [b'{"id": "x%d"}' % number for number in range(0, 900, 3)]
    rows = {(row["queue_id"], row["queue_offset"]): row for row in scanned(store)}
    for error in errors:
        row = rows[error["queue_id"], error["queue_offset"]]
        assert (error["topic"], error["store_timestamp"]) == ("orders", row["store_timestamp"])
        assert (error["physical_offset"], error["length"]) == (row["physical_offset"], len(row["body"]))
    again = lake.ingest(store, errors=True, **BODIES)
    assert (again.rows, again.errors) == (0, 0)


def damage_log(store: Path) -> tuple[int, bytes]:
    """Damages the size of a message in the middle of the log. Returns its place and what now stands there."""
    row = scanned(store)[len(scanned(store)) // 2]
    file = sorted((store / "commitlog").iterdir())[row["physical_offset"] // SMALL.file_size]
    with file.open("r+b") as opened:
        opened.seek(row["physical_offset"] - int(file.name))
        opened.write(b"\x7f")
        opened.seek(row["physical_offset"] - int(file.name))
        return row["physical_offset"], opened.read(row["store_size"])


def test_damaged_bytes_are_errors(tmp_path: Path, lake: Lake) -> None:
    store = tmp_path / "store"
    append(store, 900)
    place, raw = damage_log(store)
    written = lake.ingest(store, errors=True)
    assert (written.rows, written.errors, written.damage) == (899, 1, ())
    (error,) = errors_of(lake)
    assert (error["kind"], error["physical_offset"], error["length"]) == ("damage", place, len(raw))
    assert error["raw"] == raw
    assert "expected" in error["reason"]
    assert error["file"].startswith(str(store / "commitlog"))
    assert error["topic"] is None


def test_a_message_whose_body_differs_from_its_crc_is_an_error(tmp_path: Path, lake: Lake) -> None:
    store = tmp_path / "store"
    write_store(store, [RawMessage("T", b"%s body" % word) for word in (b"first", b"other", b"third")], Options())
    (file,) = (store / "commitlog").iterdir()
    data = file.read_bytes()
    with file.open("r+b") as opened:
        opened.seek(data.index(b"other body"))
        opened.write(b"wrong")
    assert lake.ingest(store, errors=True).rows == 2
    assert [row["body"] for row in lake.rows()] == [b"first body", b"third body"]
    (error,) = errors_of(lake)
    assert b"wrong body" in error["raw"]
    assert error["raw"][:4] == len(error["raw"]).to_bytes(4, "big")


@pytest.fixture
def fail_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ends an ingest before a commit of the rows, behind that of their errors."""

    def fail(number: int) -> None:
        calls: list[str] = []
        for kind in (ParquetDirectory, DeltaTable, IcebergTable):

            def commit(self: Any, *arguments: Any, original: Any = kind.commit) -> None:
                if not self.name.rstrip("/").endswith("__errors"):
                    calls.append(self.name)
                    if len(calls) == number:
                        raise KeyboardInterrupt
                original(self, *arguments)

            monkeypatch.setattr(kind, "commit", commit)

    return fail


def test_errors_that_were_committed_before_a_kill_are_not_written_again(
    tmp_path: Path, lake: Lake, fail_once: Callable[[int], None]
) -> None:
    store = tmp_path / "store"
    append_bodies(store, 900)
    fail_once(3)
    with pytest.raises(KeyboardInterrupt):
        lake.ingest(store, errors=True, commit_bytes=20_000, **BODIES)
    before = len(errors_of(lake))
    assert 0 < before < 300
    append_bodies(store, 300, start=900)
    # in steps of another size
    lake.ingest(store, errors=True, **BODIES)
    assert len(lake.rows()) == 800
    places = [row["physical_offset"] for row in errors_of(lake)]
    assert (len(places), len(set(places))) == (400, 400)


def test_errors_leave_no_choice_for_bad_bodies(tmp_path: Path, lake: Lake) -> None:
    append_bodies(tmp_path / "store", 3)
    with pytest.raises(ArgumentError, match="on_error: expected none with errors=True, got 'fail'"):
        lake.ingest(tmp_path / "store", errors=True, on_error="fail", **BODIES)


def test_the_command_counts_errors_and_ends_well(tmp_path: Path) -> None:
    append_bodies(tmp_path / "store", 30)
    options = ("--errors", "--decode", "json", "--schema", "id bigint", "-o", "json")
    ended = run("ingest", tmp_path / "store", "--out", tmp_path / "out", *options)
    assert (ended.exit_code, ended.stderr) == (0, "")
    (facts,) = json.loads(ended.stdout)
    assert (facts["rows"], facts["errors"]) == (20, 10)
    for option in (("--errors",), ("--partition", "topic"), ("--compression", "zstd"), ("--option", "a=b")):
        refused = run("ingest", tmp_path / "store", "--out", tmp_path / "spark", *option, "--engine", "columnar")
        assert refused.exit_code == 2
        assert f"{option[0]}: expected --engine local" in refused.stderr
