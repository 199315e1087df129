"""Paths of the command line: an empty text is not the current directory, a URL is no directory of that name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from rmqfast import AppendOptions, Message, open_store
from rmqfast.cli.app import app
from rmqfast.cli.plain import COMMANDS
from rmqfast.cli.plain import run as run_plain
from tests.cli.command_line import run

SMALL = AppendOptions(file_size=65536, queue_file_size=2000, index_slots=100, index_entries=400)
#: Options that are not called as their parameters.
NAMES = {"directory": "--dir"}
NO_PATHS = ["", "s3://bucket/out", "hdfs:/x", "file://elsewhere/x"]


def takes_path(parameter: inspect.Parameter) -> bool:
    kinds = {parameter.annotation, *get_args(parameter.annotation)}
    kinds |= {kind for each in kinds for kind in get_args(each)} | {
        kind for each in kinds for inner in get_args(each) for kind in get_args(inner)
    }
    return Path in kinds


def paths_of(name: str, command: Any) -> Iterator[list[str]]:
    """Words that end before the value of a path, for each path of a command."""
    arguments: list[str] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        is_argument = parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        option = [] if is_argument else [NAMES.get(parameter.name, f"--{parameter.name.replace('_', '-')}")]
        if takes_path(parameter):
            yield [*name.split(), *arguments, *option]
        arguments += ["x"] if is_argument else []


def all_paths(group: typer.Typer, prefix: str = "") -> Iterator[list[str]]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield from paths_of(prefix + (command.name or command.callback.__name__), command.callback)
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from all_paths(inner.typer_instance, f"{prefix}{inner.name} ")


PATHS = list(all_paths(app))


def test_the_command_line_has_paths() -> None:
    assert ["store", "clean"] in PATHS
    assert ["store", "export", "x"] in PATHS
    assert ["server", "--store"] in PATHS
    assert len(PATHS) > 15


@pytest.mark.parametrize("words", PATHS, ids=" ".join)
def test_no_command_takes_an_empty_path_or_a_url(words: list[str]) -> None:
    for text in NO_PATHS:
        done = run(*words, text)
        assert (done.exit_code, done.stdout) == (2, ""), (text, done.output)
        # one of the two is always named: the option or argument
        assert "expected a " in done.stderr, done.stderr
        assert f"got '{text}'" in " ".join(done.stderr.replace("│", " ").split()), done.stderr


@pytest.mark.parametrize(
    "words", [words for name in COMMANDS for words in paths_of(name, COMMANDS[name])], ids=" ".join
)
def test_commands_without_the_extra_take_none_either(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for text in NO_PATHS:
        with pytest.raises(SystemExit) as ended:
            run_plain([*words, text])
        assert ended.value.code == 2
        assert f"got '{text}'" in capsys.readouterr().err


def test_an_ingest_takes_urls_and_no_empty_path(tmp_path: Path) -> None:
    with open_store(tmp_path / "store", mode="a", options=SMALL) as store:
        store.append(Message("orders", b"paid"))
    for engine in ("local", "auto"):
        done = run("ingest", tmp_path / "store", "--out", "", "--engine", engine)
        assert (done.exit_code, "--out" in done.stderr or "out:" in done.stderr) == (2, True), done.output
    done = run("ingest", tmp_path / "store", "--out", "s3:/bucket/out", "--engine", "local")
    assert (done.exit_code, "got 's3:/bucket/out'" in done.stderr) == (2, True), done.output
    done = run("ingest", tmp_path / "store", "--out", f"file:{tmp_path}/out", "--engine", "local")
    assert (done.exit_code, (tmp_path / "out" / "_SUCCESS").exists()) == (0, True), done.output


def test_a_file_url_names_a_directory(tmp_path: Path) -> None:
    with open_store(tmp_path / "a store", mode="a", options=SMALL) as store:
        store.append(Message("orders", b"paid"))
    done = run("store", "scan", f"file://{tmp_path}/a%20store", "-o", "jsonl")
    assert (done.exit_code, done.stdout.count("\n")) == (0, 1), done.output


def test_what_changes_a_store_says_first_which_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(tmp_path / "store", mode="a", options=SMALL) as store:
        store.append(Message("orders", b"paid"))
    monkeypatch.chdir(tmp_path / "store")
    for words in (["store", "clean", "."], ["store", "repair", "../store"]):
        done = run(*words, "--yes")
        assert done.stderr.startswith(f"store: {tmp_path / 'store'}"), done.stderr


@pytest.mark.parametrize("value", ["", "hdfs://n/store"])
def test_a_configuration_with_an_empty_path_starts_nothing(value: str, tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text(f"listenPort=0\nstorePathRootDir={value}\n")
    for command in ("broker", "server"):
        done = run(command, "-c", tmp_path / "broker.conf")
        assert (done.exit_code, done.stdout) == (2, ""), done.output
        assert "storePathRootDir: expected a path" in done.stderr
