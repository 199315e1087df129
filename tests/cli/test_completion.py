"""What a shell completes: by Typer's protocol, as processes, and in a real bash."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rmqfast import EmbeddedCluster
from rmqfast.admin import Admin
from rmqfast.cli.app import app
from rmqfast.cli.completion import join_split_words
from tests.cli.command_line import run_process
from tests.cli.terminal import Terminal
from tests.golden_stores import PathOf

COMMAND = str(Path(sys.executable).with_name("rmqfast"))
PROMPT = "ready>"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        with Admin(name_server=running.name_server) as admin:
            for topic in ("orders", "ordered", "bills"):
                admin.create_topic(topic, 1)
            admin.create_group("cashiers")
            admin.create_group("auditors")
        yield running


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def completed(*words: str, **environment: str) -> list[str]:
    """The words that bash would offer for the last one, which may be empty."""
    line = {"COMP_WORDS": "\n".join(("rmqfast", *words)), "COMP_CWORD": str(len(words))}
    env = {"_RMQFAST_COMPLETE": "complete_bash"} | line | environment
    join_split_words(env)
    done = CliRunner().invoke(app, [], env=env, prog_name="rmqfast")
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("topic", "show", "ord"), ["ordered", "orders"]),
        (("produce", "bi"), ["bills"]),
        (("message", "show", "--topic", "orders"), ["orders"]),
        (("explain", "--topic", "=", "bi"), ["bills"]),
        (("group", "show", ""), ["auditors", "cashiers"]),
        (("consume", "orders", "--group", "ca"), ["cashiers"]),
        (("group", "reset", "cashiers", "ord"), ["ordered", "orders"]),
        (("group", "clone", "cashiers", "au"), ["auditors"]),
        (("group", "show", "nobody"), []),
        (("topic", "show", "%SYS"), []),
    ],
    ids=" ".join,
)
def test_topics_and_groups_come_from_the_cluster(
    words: tuple[str, ...], expected: list[str], cluster: EmbeddedCluster
) -> None:
    assert completed(*words, NAMESRV_ADDR=cluster.name_server) == expected


def test_the_cluster_is_that_of_the_command_line(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    (tmp_path / "rmqfast.toml").write_text(f'[profiles.prod]\nname_server = "{cluster.name_server}"\n')
    host, port = cluster.name_server.split(":")
    for option in (
        ("-n", cluster.name_server),
        ("-n", host, ":", port),  # as bash splits it
        ("--name-server", "=", host, ":", port),
        ("--profile", "prod"),
    ):
        assert completed("topic", "show", *option, "bi") == ["bills"]
    assert completed("topic", "show", "bi") == []


def test_topics_of_the_system_are_offered_to_whoever_asks_for_them(cluster: EmbeddedCluster) -> None:
    with Admin(name_server=cluster.name_server) as admin:
        admin.create_topic("%DLQ%cashiers", 1)
    offered = completed("topic", "show", "", NAMESRV_ADDR=cluster.name_server)
    assert {"bills", "ordered", "orders"} <= set(offered)
    assert not [topic for topic in offered if topic.startswith("%")]
    assert completed("topic", "show", "%D", NAMESRV_ADDR=cluster.name_server) == ["%DLQ%cashiers"]


@pytest.mark.parametrize("command", ["scan", "tail", "get", "export"])
def test_topics_of_a_store_come_from_its_directory(command: str, golden_store: PathOf) -> None:
    store = str(golden_store("basic-4.9.4"))
    directories = (store, "out") if command == "export" else (store,)
    offered = completed("store", command, *directories, "--topic", "fx_q")
    assert offered
    assert all(topic.startswith("fx_q") for topic in offered)
    assert completed("store", command, *directories, "--topic", "nothing") == []


def test_the_home_of_the_reader_is_found_though_no_shell_has_replaced_it(golden_store: PathOf) -> None:
    store = golden_store("basic-4.9.4")
    words = ("store", "scan", f"~/{store.name}", "--commit-log-dir", f"~/{store.name}/commitlog", "--topic", "fx_q1")
    assert completed(*words, HOME=str(store.parent)) == ["fx_q1"]
    assert completed("store", "scan", "~nobody-of-that-name/store", "--topic", "fx") == []


def test_whoever_cannot_be_reached_completes_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "rmqfast.toml").write_text("[profiles.prod]\nname_server = 5\n")
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        for server in (silent, closed):
            address = f"127.0.0.1:{server.getsockname()[1]}"
            assert completed("topic", "show", "-n", address, "o") == []
            assert completed("group", "show", "-n", address, "o") == []
    assert completed("topic", "show", "--profile", "prod", "o") == []
    assert completed("topic", "show", "--profile", "other", "o") == []
    assert completed("topic", "show", "-n", "no address", "o") == []
    assert completed("store", "scan", "/nowhere", "--topic", "o") == []
    assert completed("store", "scan", str(tmp_path), "--topic", "o") == []


@pytest.mark.parametrize(("shell", "expected"), [("fish", "bills\n"), ("zsh", "_arguments '*: :((\"bills\"))'\n")])
def test_other_shells_are_answered_in_their_words(shell: str, expected: str, cluster: EmbeddedCluster) -> None:
    env = {"_RMQFAST_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    line = f"rmqfast topic show -n {cluster.name_server} bi"
    done = run_process(**env, _TYPER_COMPLETE_ARGS=line)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


@pytest.mark.parametrize(
    ("shell", "file"),
    [("bash", ".bashrc"), ("zsh", ".zfunc/_rmqfast"), ("fish", ".config/fish/completions/rmqfast.fish")],
)
def test_completion_is_installed_for_each_shell(shell: str, file: str, tmp_path: Path) -> None:
    # Typer finds the shell by its process; tests name it
    chosen = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", "HOME": str(tmp_path)}
    done = run_process("--install-completion", shell, **chosen)
    assert (done.returncode, done.stderr) == (0, "")
    assert "rmqfast" in (tmp_path / file).read_text()


def test_a_real_bash_installs_it_and_completes_a_topic(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    path = f"{Path(COMMAND).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"HOME": str(tmp_path), "PATH": path, "PS1": PROMPT}
    with Terminal.of(["bash", "--noprofile", "--norc", "-i"], env) as terminal:
        terminal.read_until(PROMPT)
        terminal.type("rmqfast --install-completion\n")
        terminal.read_until("bash completion installed")
        terminal.read_until(PROMPT)
        terminal.type("source ~/.bashrc\n")
        terminal.read_until(PROMPT)
        terminal.type(f"rmqfast topic show -n {cluster.name_server} bi\t")
        terminal.read_until("bills ")
        terminal.type("-o jsonl\n")
        assert '"topic":"bills"' in terminal.read_until('"max_offset"').replace(" ", "")
