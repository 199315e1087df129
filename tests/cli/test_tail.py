"""`rmqfast store tail`: the last messages, those that come, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, Message, WritableStore
from tests.cli.command_line import COMMAND, run
from tests.golden_stores import PathOf

SMALL = AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=1000, index_entries=4000)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[WritableStore]:
    with rmqfast.open_store(tmp_path / "s", mode="a", options=SMALL) as store:
        store.append_many(Message("T", b"%d" % n, tags=f"t{n % 3}") for n in range(40))
        yield store


def offsets(text: str) -> list[int]:
    return [json.loads(line)["queue_offset"] for line in text.splitlines()]


def test_the_last_ten_messages_are_printed_and_the_command_ends(golden_store: PathOf) -> None:
    result = run("store", "tail", golden_store("basic-4.9.4"), "--topic", "fx_q1", "-o", "jsonl")
    assert result.exit_code == 0
    assert offsets(result.stdout) == list(range(1249, 1259))


def test_it_takes_the_filters_and_forms_of_a_scan(store: WritableStore) -> None:
    command = ("store", "tail", store.path, "--topic", "T", "--tags", "t1", "-n", "2")
    assert offsets(run(*command, "-o", "jsonl").stdout) == [34, 37]
    rows = list(csv.DictReader(io.StringIO(run(*command, "-o", "csv", "--columns", "tags,queue_offset").stdout)))
    assert rows == [{"tags": "t1", "queue_offset": "34"}, {"tags": "t1", "queue_offset": "37"}]
    assert [row["queue_offset"] for row in json.loads(run(*command, "-o", "json").stdout)] == [34, 37]
    table = run(*command).stdout.splitlines()
    assert table[0].split() == ["topic", "queue_id", "queue_offset", "store_timestamp", "tags", "keys", "body"]
    assert len(table) == 3


def test_what_comes_is_printed_as_it_comes_until_ctrl_c(store: WritableStore) -> None:
    command = [*COMMAND, "store", "tail", str(store.path), "-f", "-n", "2", "-o", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert offsets(process.stdout.readline() + process.stdout.readline()) == [38, 39]
        for n in (40, 41):
            store.append(Message("T", b"%d" % n))
            assert offsets(process.stdout.readline()) == [n]
        process.send_signal(signal.SIGINT)
        assert (process.stdout.read(), process.stderr.read(), process.wait()) == ("", "", 0)


def damaged(path: Path) -> int:
    """Spoils the third record from behind; where it stands in the log."""
    first: int = rmqfast.open_store(path).scan(columns=["physical_offset"]).to_arrow()["physical_offset"][-3].as_py()
    size = 1 << 20
    with (path / "commitlog" / f"{first // size * size:020d}").open("r+b") as file:
        file.seek(first % size + 4)
        file.write(b"\0")
    return first


def test_damage_is_told_with_exit_code_1(golden_store_copy: PathOf) -> None:
    path = golden_store_copy("basic-4.9.4")
    first = damaged(path)
    result = run("store", "tail", path, "-n", "5", "-o", "jsonl")
    assert result.exit_code == 1
    assert f"offset {first}" in result.stderr
    assert len(result.stdout.splitlines()) == 5


@pytest.mark.parametrize("more", [(), ("-f",)], ids=["to the end", "on and on"])
def test_damage_ends_a_tail_that_shall_fail(golden_store_copy: PathOf, more: tuple[str, ...]) -> None:
    path = golden_store_copy("basic-4.9.4")
    first = damaged(path)
    result = run("store", "tail", path, "-n", "5", "-o", "jsonl", "--on-damage", "fail", *more)
    assert result.exit_code == 1
    assert f"offset {first}" in result.stderr
    assert len(result.stdout.splitlines()) < 5
    assert "Traceback" not in result.stderr


def test_an_array_that_never_ends_is_refused(golden_store: PathOf) -> None:
    result = run("store", "tail", golden_store("basic-4.9.4"), "-f", "-o", "json")
    assert result.exit_code == 2
    assert "expected table, jsonl or csv" in result.stderr
