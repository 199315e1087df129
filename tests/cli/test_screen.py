"""Tables for people: where columns begin is settled by the first rows, and what comes later is not cut for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast import Message, open_store
from tests.cli.command_line import run, run_on_terminal

BODY = "the body of a message, longer than any line of a terminal of eighty columns could be, " * 9


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two messages: a short one, then one whose every value is longer."""
    with open_store(tmp_path / "store", mode="a") as writable:
        writable.append(Message("t", b"x", "a", ["k"]))
        writable.append(Message("t", BODY.encode(), "a-tag-of-many-characters", [f"key-{n:020}" for n in range(3)]))
    return tmp_path / "store"


def test_a_pipe_gets_every_value_as_a_whole(store: Path) -> None:
    header, first, second = run("store", "scan", store).stdout.splitlines()
    assert header.split() == ["topic", "queue_id", "queue_offset", "store_timestamp", "tags", "keys", "body"]
    assert first.split()[-3:] == ["a", "k", "x"]
    assert "a-tag-of-many-characters" in second
    assert " ".join(f"key-{n:020}" for n in range(3)) in second
    assert second.endswith(BODY.rstrip())


def test_a_terminal_cuts_only_a_body_that_was_not_asked_for(store: Path) -> None:
    _, written = run_on_terminal("stdout", "store", "scan", store, NO_COLOR="1")
    *_, second = written.decode().splitlines()
    assert "a-tag-of-many-characters" in second
    assert " ".join(f"key-{n:020}" for n in range(3)) in second
    assert second.endswith("…")
    _, written = run_on_terminal("stdout", "store", "scan", store, "--columns", "tags,body", NO_COLOR="1")
    assert BODY.rstrip() in written.decode()


def test_columns_begin_behind_the_widest_of_the_first_rows(store: Path) -> None:
    table = run("store", "scan", store, "--columns", "queue_offset,tags,queue_id").stdout.splitlines()
    assert table == [
        "queue_offset  tags                      queue_id",
        "0             a                         0",
        "1             a-tag-of-many-characters  0",
    ]


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    with open_store(tmp_path / "hostile", mode="a") as writable:
        writable.append(Message("t", b"x", keys=["k\x1b[2J\u202ek"]))
    return tmp_path / "hostile"


def test_csv_is_as_it_is_in_a_file_and_harmless_on_a_terminal(hostile: Path) -> None:
    command = ("store", "scan", hostile, "--columns", "keys", "-o", "csv")
    assert run(*command).stdout == "keys\nk\x1b[2J\u202ek\n"
    _, written = run_on_terminal("stdout", *command)
    assert written.decode().splitlines() == ["keys", "k\\x1b[2J\\u202ek"]


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_json_is_the_same_in_a_file_and_on_a_terminal(hostile: Path, form: str) -> None:
    command = ("store", "scan", hostile, "--columns", "keys", "-o", form)
    in_file = run(*command).stdout
    _, written = run_on_terminal("stdout", *command)
    assert written.decode().splitlines() == in_file.splitlines()
    assert '"k\\u001b[2J\\u202ek"' in in_file


def test_a_table_leaves_out_what_a_terminal_would_act_on(hostile: Path) -> None:
    command = ("store", "scan", hostile, "--columns", "keys")
    _, written = run_on_terminal("stdout", *command, NO_COLOR="1")
    assert "k[2Jk" in written.decode()
    assert "k[2Jk" in run(*command).stdout
