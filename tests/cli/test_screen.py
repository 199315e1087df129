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
