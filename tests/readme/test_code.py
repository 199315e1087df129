"""The code and the commands of the README run as they stand; that of Spark has a test in `tests/spark`."""

from __future__ import annotations

import re
import shlex
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from rmqfast import open_store
from tests.cli.command_line import run
from tests.cli.test_server import end, serving
from tests.examples.documents import blocks_of, check_code, shell_lines, with_readers

from .readers import DOCUMENT, README, readers_things

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow
ROOT = README.parent
#: Where the package is not installed, as in its own checkout, nobody tells pytest of the plugin.
PLUGIN = [] if entry_points(group="pytest11", name="rmqfast") else ["-p", "rmqfast.testing.plugin"]


def is_plain(code: str) -> bool:
    """Whether it needs neither Spark nor pytest."""
    return "pyspark" not in code and "def test_" not in code


def commands(name: str) -> list[str]:
    """Those of the README that call a program."""
    blocks = [block.code for block in blocks_of(DOCUMENT) if block.language == "sh"]
    return [line for block in blocks for line in shell_lines(block) if line.startswith(f"{name} ")]


def test_the_blocks_of_stores_and_clients_run(tmp_path: Path) -> None:
    with readers_things(tmp_path) as things:
        names = check_code(DOCUMENT, readers=things, chosen=is_plain)
    assert set(names["queues"]) == {"clicks", "orders", "payments"}
    assert set(names["frame"].columns) == {"queue_offset", "keys", "body"}
    assert len(names["frame"]) > 0
    assert sum(names["sizes"]) > 0
    assert names["sent"].queue_offset >= 0
    assert {message.tags for message in names["messages"]} == {"paid"}


def test_the_test_of_the_readme_passes(pytester: pytest.Pytester) -> None:
    (block,) = (block for block in blocks_of(DOCUMENT) if "def test_" in block.code)
    pytester.makepyfile(block.code)
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=1)


def test_each_block_runs_in_one_of_the_tests() -> None:
    codes = [block.code for block in blocks_of(DOCUMENT) if block.language == "python"]
    assert [sum(map(kind, codes)) for kind in (is_plain, lambda code: "pyspark" in code)] == [2, 1]
    assert len(codes) == 4


def test_the_commands_run(tmp_path: Path) -> None:
    lines = commands("rmqfast")
    assert {line.split()[1] for line in lines} == {"store", "ingest", "server"}
    with readers_things(tmp_path) as things:
        for line in lines:
            words = shlex.split(with_readers(line, things))[1:]
            if words[0] == "server":
                with serving(*words) as (process, _):
                    end(process)
            else:
                assert run(*words).exit_code == 0, line
    with open_store(tmp_path / "orders") as exported:
        assert set(exported.topics()) == {"orders"}
    assert list((tmp_path / "lake").rglob("*.parquet"))
    assert (tmp_path / "broker" / "commitlog").exists()


def test_the_targets_that_it_names_are_those_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = [line.split()[1] for line in commands("make")]
    assert named == ["demo", "test"]
    assert set(named) <= targets
