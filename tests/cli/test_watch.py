"""`--watch`: answers in place on a terminal, and one below the other elsewhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast import AppendOptions, EmbeddedCluster, Message, WritableStore
from rmqfast.admin import Admin
from tests.cli.command_line import COMMAND, run
from tests.cli.terminal import Terminal
from tests.remoting.held_port import held_port

SMALL = AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=1000, index_entries=4000)
OFTEN = ("--watch", "0.1")
ALTERNATE, BACK = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[WritableStore]:
    with rmqfast.open_store(tmp_path / "s", mode="a", options=SMALL) as store:
        store.append(Message("before", b"1"))
        yield store


def test_a_terminal_shows_what_changes_in_place_and_keeps_the_last_answer(store: WritableStore) -> None:
    command = [*COMMAND, "store", "info", str(store.path), *OFTEN]
    with Terminal.of(command, os.environ) as terminal:
        terminal.read_until(ALTERNATE)
        terminal.read_until("before")
        store.append(Message("behind", b"2"))
        terminal.read_until("behind")
        terminal.type("\x03")
        terminal.read_until(BACK)
        assert "behind" in terminal.read_to_end()
        assert terminal.process.wait() == 0


def test_lines_that_do_not_fit_are_cut_and_not_wrapped(store: WritableStore) -> None:
    for number in range(60):
        store.append(Message(f"topic_{number:02}", b"x"))
    command = [*COMMAND, "store", "info", str(store.path), *OFTEN]
    with Terminal.of(command, os.environ) as terminal:
        terminal.read_until(ALTERNATE)
        terminal.read_until("topic_00")
        shown = terminal.read_until("topic_00")  # the next answer, so this one was whole
        assert "topic_59" not in shown
        terminal.process.send_signal(signal.SIGTERM)
        terminal.read_until(BACK)
        assert "topic_59" in terminal.read_to_end()
        assert terminal.process.wait() == 0


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_each_answer_is_a_document_of_its_own(form: str, store: WritableStore) -> None:
    command = [*COMMAND, "store", "info", str(store.path), *OFTEN, "-o", form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "before" in process.stdout.readline()
        store.append(Message("behind", b"2"))
        for line in process.stdout:
            answer = json.loads(line)
            rows = answer["topics"] if form == "json" else [answer]
            if "behind" in [row["topic"] for row in rows]:
                break
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert (process.stderr.read(), process.wait()) == ("", 0)


def test_tables_in_a_pipe_are_appended(store: WritableStore) -> None:
    command = [*COMMAND, "store", "info", str(store.path), *OFTEN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        headers = (line for line in process.stdout if line.startswith("topic "))
        assert next(headers) == next(headers)
        process.terminate()
        assert "\x1b" not in process.stdout.read()
        assert process.wait() == 0


def test_a_watch_of_a_cluster_goes_on_though_the_cluster_is_away_for_a_while() -> None:
    with (
        held_port() as address,
        EmbeddedCluster(name_server_port=int(address.rpartition(":")[2])) as cluster,
        Admin(name_server=address) as admin,
    ):
        admin.create_topic("orders", 1)
        command = [*COMMAND, "topic", "list", "-n", address, *OFTEN]
        with Terminal.of(command, os.environ) as terminal:
            terminal.read_until("orders")
            admin.create_topic("payments", 1)
            terminal.read_until("payments")
            cluster.stop()
            terminal.read_until("error: ")
            with EmbeddedCluster(name_server_port=int(address.rpartition(":")[2])):
                terminal.read_until("TBW102")
                terminal.type("\x03")
                terminal.read_until(BACK)
                assert terminal.process.wait() == 0


def test_a_first_answer_that_fails_ends_the_command_as_without(tmp_path: Path) -> None:
    result = run("store", "info", tmp_path / "missing", "--watch")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (3, "", 1)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--watch", "0"), "--watch: expected 0.1 to 86400 seconds, got 0"),
        (("--watch", "-1"), "got -1"),
        (("--watch=nan",), "got nan"),
        (("--watch", "inf"), "got inf"),
        (("--watch=soon",), "Invalid value for '--watch'"),
        (("--watch", "-o", "csv"), "expected table, json or jsonl with --watch, got csv"),
    ],
    ids=str,
)
def test_a_mistake_is_exit_code_2(words: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    result = run("store", "info", tmp_path, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert reason in result.stderr


def test_words_behind_two_dashes_are_no_options() -> None:
    result = run("store", "info", "--", "--watch")
    assert (result.exit_code, result.stderr) == (3, "error: --watch: no such file or directory\n")
