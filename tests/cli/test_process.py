"""The command as a process: pipes that close, Ctrl-C, libraries that are missing, terminals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import rmqfast
from tests.cli.command_line import COMMAND, run_on_terminal, run_process
from tests.golden_stores import PathOf


def start(*arguments: str | Path) -> subprocess.Popen[bytes]:
    """Starts the command with pipes."""
    return subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


WRITERS = [*(("scan", "-o", form) for form in ("table", "json", "jsonl", "csv")), ("export", "-")]


@pytest.mark.parametrize("words", WRITERS, ids=" ".join)
def test_a_closed_pipe_ends_the_command_quietly(words: Sequence[str], golden_store: PathOf) -> None:
    command, *more = words
    with start("store", command, golden_store("basic-4.9.4"), *more) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


@pytest.mark.parametrize("command", ["info", "verify"])
def test_a_pipe_that_was_closed_before_the_first_word_is_no_trouble_either(command: str, golden_store: PathOf) -> None:
    with start("store", command, golden_store("basic-4.9.4"), "-o", "json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


def test_ctrl_c_ends_the_command_with_130_and_no_traceback(golden_store: PathOf) -> None:
    with start("store", "scan", golden_store("basic-4.9.4"), "-o", "jsonl") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)  # it writes; the pipe is soon full, so it cannot end by itself
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert (process.stderr.read(), process.wait()) == (b"", 130)


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name={name!r})
sys.meta_path.insert(0, Blocked())
"""


def without(library: str, directory: Path) -> dict[str, str]:
    """An environment whose Python cannot import `library`."""
    (directory / "sitecustomize.py").write_text(BLOCKED.format(name=library), encoding="utf-8")
    path = [str(directory), str(Path(rmqfast.__file__).parents[1])]
    return {"PYTHONPATH": os.pathsep.join(path)}


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_without_the_extra_one_line_says_what_to_type(library: str, tmp_path: Path) -> None:
    result = run_process("store", "info", tmp_path, **without(library, tmp_path))
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == f"the command line needs {library}: pip install 'rmqfast[cli]'\n"
    assert run_process("--version", **without(library, tmp_path)).stdout == f"rmqfast {rmqfast.__version__}\n"


def test_a_command_that_needs_pyarrow_says_so_and_others_do_without(golden_store: PathOf, tmp_path: Path) -> None:
    store, environment = golden_store("basic-4.9.4"), without("pyarrow", tmp_path)
    assert run_process("store", "info", store, **environment).returncode == 0
    for command in (("store", "scan", store, "-o", "jsonl"), ("ingest", store, "--out", tmp_path / "out")):
        result = run_process(*command, **environment)
        assert (result.returncode, result.stdout) == (3, "")
        assert "pyarrow" in result.stderr
        assert "pip install 'rmqfast[" in result.stderr
        assert result.stderr.count("\n") == 1


def test_without_pyspark_one_line_says_what_to_type(golden_store: PathOf, tmp_path: Path) -> None:
    arguments = ("ingest", golden_store("offsets-4.9.4"), "--out", tmp_path / "out", "--master", "local[2]")
    result = run_process(*arguments, **without("pyspark", tmp_path))
    assert (result.returncode, result.stdout) == (3, "")
    assert "pip install 'rmqfast[spark]'" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_data_source_without_pyspark_says_what_to_type(tmp_path: Path) -> None:
    program = "import rmqfast.spark; rmqfast.spark.RocketMQDataSource"
    env = os.environ | without("pyspark", tmp_path)
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    said = "rmqfast.errors.MissingExtraError: the data source needs pyspark: pip install 'rmqfast[spark]'"
    assert done.stderr.splitlines()[-1] == said


def test_a_terminal_gets_a_bold_header_unless_it_wants_no_colour(golden_store: PathOf) -> None:
    _, written = run_on_terminal("stdout", "store", "scan", golden_store("offsets-4.9.4"), "--limit", "3")
    assert b"\x1b[1m" in written
    _, plain = run_on_terminal("stdout", "store", "scan", golden_store("offsets-4.9.4"), "--limit", "3", NO_COLOR="1")
    assert b"\x1b" not in plain
    assert len(plain.splitlines()) == 4


def test_the_module_and_the_command_are_the_same() -> None:
    commands = [[str(Path(sys.executable).with_name("rmqfast"))], COMMAND]
    helped = [subprocess.run([*command, "--help"], capture_output=True, check=True).stdout for command in commands]
    assert helped[0] == helped[1] != b""


def test_no_command_waits_for_the_import_of_a_broker() -> None:
    look = "import sys, rmqfast.cli.app; print(sorted({'rmqfast.mirror', 'rmqfast.broker.broker'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_sql_that_names_a_column_is_a_line_on_standard_error(golden_store: PathOf) -> None:
    done = run_process("store", "scan", golden_store("basic-4.9.4"), "--sql", "queue_offset > 5", "-o", "jsonl")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("warning: sql: queue_offset is a column, and SQL sees properties alone")
    assert done.stderr.count("\n") == 1
