"""`rmqfast store export`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rmqfast
from tests.cli.command_line import run, run_on_terminal, run_process
from tests.golden_stores import PathOf
from tests.store.small_store import small_store

STORE = "basic-4.9.4"


def test_a_slice_becomes_a_store_and_a_line_says_of_what(golden_store: PathOf, tmp_path: Path) -> None:
    out = tmp_path / "slice"
    done = run("store", "export", golden_store(STORE), out, "--topic", "fx_q1", "--tags", "Aa || BB")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"213 messages, 123.5 KiB, 18 files: {out}\n"
    assert rmqfast.open_store(out).scan("fx_q1", columns=["tags"]).to_arrow().num_rows == 213


@pytest.mark.parametrize(
    "options",
    [
        ["--topic", "fx_q1", "--queue", "0", "--start-offset", "10", "--end-offset", "40"],
        ["--sql", "TAGS = 'TagA'"],
        ["--keys", "Aa1"],
        ["--start-time", "1795231243000", "--end-time", "1795231247000"],
    ],
)
def test_json_lines_are_what_a_scan_prints(golden_store: PathOf, tmp_path: Path, options: list[str]) -> None:
    store, out = golden_store(STORE), tmp_path / "rows.jsonl"
    wanted = run("store", "scan", store, *options, "-o", "jsonl").stdout
    assert wanted
    assert run("store", "export", store, out, *options).exit_code == 0
    assert out.read_text() == wanted
    printed = run("store", "export", store, "-", *options)
    assert (printed.exit_code, printed.stdout) == (0, wanted)
    assert printed.stderr.endswith(": standard output\n")


def test_the_form_can_be_told_whatever_the_name(golden_store: PathOf, tmp_path: Path) -> None:
    store = golden_store(STORE)
    topics = ["--topic", "fx_plain", "--topic", "fx_q2"]
    assert run("store", "export", store, tmp_path / "rows", *topics, "--to", "jsonl").exit_code == 0
    found = {json.loads(line)["topic"] for line in (tmp_path / "rows").read_text().splitlines()}
    assert found == {"fx_plain", "fx_q2"}
    assert run("store", "export", store, tmp_path / "s.jsonl", *topics, "--to", "store").exit_code == 0
    assert set(rmqfast.open_store(tmp_path / "s.jsonl").topics()) == found


def test_damage_is_told_with_code_1_and_the_rest_is_there(tmp_path: Path) -> None:
    small = small_store(tmp_path / "store")
    small.patch(small.records[20].physical_offset + 4, b"\xff" * 4)
    for out in (tmp_path / "out", tmp_path / "out.jsonl"):
        done = run("store", "export", small.path, out)
        assert done.exit_code == 1
        assert done.stderr.startswith("59 messages")
        assert f"offset {small.records[20].physical_offset}," in done.stderr
        assert out.exists()


def test_what_cannot_be_is_refused_before_anything_is_written(golden_store: PathOf, tmp_path: Path) -> None:
    store, out = golden_store(STORE), tmp_path / "out"
    refused: list[tuple[list[str | Path], int, str]] = [
        ([out, "--topic", "fx_q11"], 2, "did you mean fx_q1,"),
        ([out, "--sql", "a >"], 2, "a >"),
        ([tmp_path], 2, "nothing is yet"),
        (["-", "--to", "store"], 2, "expected a path"),
        ([tmp_path / "nowhere/out"], 3, "nowhere"),
    ]
    for arguments, code, text in refused:
        done = run("store", "export", store, *arguments)
        assert (done.exit_code, done.stdout) == (code, "")
        assert text in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_gets_a_bar(golden_store: PathOf, tmp_path: Path) -> None:
    code, written = run_on_terminal("stderr", "store", "export", golden_store(STORE), tmp_path / "out")
    assert code == 0
    assert b"exporting" in written
    assert b"2,779 messages" in written


#: The command, in whose midst the process is killed: once there is something of what it writes.
KILLED = """
import os, signal
from contextlib import nullcontext
from rmqfast.cli import main, store
store.bar = lambda title: nullcontext(lambda done, total: os.kill(os.getpid(), signal.SIGKILL))
main()
"""


@pytest.mark.parametrize("name", ["out", "out.jsonl"])
def test_what_is_left_of_a_process_that_was_killed_is_in_nobodys_way(
    tmp_path: Path, name: str, golden_store: PathOf
) -> None:
    store, out, partial = golden_store(STORE), tmp_path / name, tmp_path / f"{name}.partial"
    command = [sys.executable, "-c", KILLED, "store", "export", str(store), str(out)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not out.exists()
    assert partial.exists()
    done = run_process("store", "export", store, out, "--topic", "fx_q1", "--end-offset", "5")
    assert (done.returncode, done.stderr[:11]) == (0, "5 messages,")
    assert not partial.exists()
