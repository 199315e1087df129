"""Standard output that is closed, full or of another encoding, and an account without a home."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rmqfast
from rmqfast import EmbeddedCluster, Message, Producer

from .command_line import COMMAND

TAG, KEY, PROPERTY = "标签", "ключ", "北京"
#: What no program takes part in: the shell opens and closes.
CLOSED, FULL = ">&-", ">/dev/full"
#: An account without a home, whatever account runs the tests.
HOMELESS = """
import os, pwd, sys
def nobody(*_):
    raise KeyError("no such account")
pwd.getpwuid = pwd.getpwnam = nobody
for name in ("HOME", "XDG_CONFIG_HOME"):
    os.environ.pop(name, None)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streams") / "store"
    with rmqfast.open_store(path, mode="a") as opened:
        for _ in range(500):
            opened.append(Message("orders", b"paid", tags=TAG, keys=KEY, properties={"city": PROPERTY}))
    return path


def redirected(redirection: str, *words: str) -> tuple[int, str]:
    """The exit code of a command of the shell, and what it said."""
    command = ["sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("--help",),
        ("store", "--help"),
        ("store", "info", "STORE"),
        ("store", "info", "STORE", "-o", "json"),
        ("store", "scan", "STORE"),
        ("store", "scan", "STORE", "-o", "csv"),
        ("store", "scan", "STORE", "-o", "jsonl", "--limit", "1"),
        ("store", "export", "STORE", "-"),
        ("broker", "--print-config"),
    ],
    ids=" ".join,
)
def test_output_that_nobody_takes_is_one_line_and_an_exit_code(words: tuple[str, ...], store: Path) -> None:
    words = tuple(str(store) if word == "STORE" else word for word in words)
    assert redirected(CLOSED, *words) == (3, "error: standard output: Bad file descriptor\n")
    assert redirected(FULL, *words) == (3, "error: standard output: No space left on device\n")


def test_without_standard_error_output_has_only_what_is_asked_for(store: Path) -> None:
    command = ["sh", "-c", '"$@" 2>&-', "sh", *COMMAND, "store", "export", str(store), "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 500


def scanned(store: Path, form: str, encoding: str) -> bytes:
    words = [*COMMAND, "store", "scan", str(store), "--limit", "1", "--columns", "tags,keys,properties", "-o", form]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    return subprocess.run(words, env=environment, capture_output=True, check=True).stdout


@pytest.mark.parametrize("encoding", ["ascii", "gbk", "latin-1", "utf-8"])
def test_data_is_utf_8_whatever_a_terminal_shows(store: Path, encoding: str) -> None:
    (row,) = json.loads(scanned(store, "json", encoding).decode("utf-8"))
    assert (row["tags"], row["keys"], row["properties"]["city"]) == (TAG, KEY, PROPERTY)
    assert json.loads(scanned(store, "jsonl", encoding).decode("utf-8")) == row
    (read,) = csv.DictReader(io.StringIO(scanned(store, "csv", encoding).decode("utf-8")))
    assert (read["tags"], read["keys"]) == (TAG, KEY)


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "??"), ("latin-1", "??"), ("gbk", TAG), ("utf-8", TAG)])
def test_tables_replace_what_cannot_be_shown(store: Path, encoding: str, shown: str) -> None:
    assert scanned(store, "table", encoding).decode(encoding).splitlines()[1].split()[0] == shown


def homeless(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", HOMELESS + code], capture_output=True, text=True, check=False)


def command(*words: str) -> str:
    return f"sys.argv = {['rmqfast', *words]!r}\nfrom rmqfast.cli import main\nmain()"


def test_an_account_without_a_home_uses_a_cluster() -> None:
    with EmbeddedCluster() as cluster, Producer("shop", name_server=cluster.name_server) as producer:
        producer.send(Message("orders", b"paid"))
        for words in (
            ("topic", "list"),
            ("produce", "orders", "x"),
            ("consume", "orders", "--group", "g", "--from", "first", "--max", "1"),
        ):
            done = homeless(command(*words, "-n", cluster.name_server))
            assert (done.returncode, "orders" in done.stdout) == (0, True), done.stderr


def test_an_account_without_a_home_runs_a_cluster() -> None:
    done = homeless("import rmqfast\nwith rmqfast.EmbeddedCluster() as cluster:\n    print(len(cluster.brokers))")
    assert (done.stdout, done.stderr) == ("1\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("broker", "-n", "127.0.0.1:1"), "storePathRootDir: expected a directory, got none"),
        (("namesrv", "--port", "0"), "kvConfigPath, configStorePath: expected paths in a file (--config)"),
        (("topic", "list", "--profile", "x"), "expected a profile of ~/.config/rmqfast.toml, got 'x'"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_where_a_home_is_needed_the_option_is_named(words: tuple[str, ...], said: str) -> None:
    done = homeless(command(*words))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert said in done.stderr


def test_offsets_of_a_broadcast_need_a_directory() -> None:
    code = """
import rmqfast
consumer = rmqfast.PushConsumer("g", name_server="127.0.0.1:1", message_model="BROADCASTING")
consumer.register_message_listener(print)
try:
    consumer.start()
except rmqfast.RmqError as error:
    print(error)
"""
    assert homeless(code).stdout == "local_offset_dir: expected a directory, as this account has no home, got none\n"
