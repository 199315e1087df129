"""The command line where nothing but this package is installed: the interpreter has no other directory of packages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rmqfast
from tests.cli.command_line import run
from tests.cli.test_server import SMALL, end, serving
from tests.embedded.client import pull, send

#: `-S`: without `site` there is no site-packages; the path has the standard library, and this.
ALONE = (sys.executable, "-S", "-m", "rmqfast")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(rmqfast.__file__).parents[1])}


def run_alone(*words: object) -> subprocess.CompletedProcess[str]:
    command = [*ALONE, *map(str, words)]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def test_nothing_else_is_there() -> None:
    names = "('typer', 'rich', 'pyarrow', 'yaml')"
    look = f"from importlib.util import find_spec; print([name for name in {names} if find_spec(name)])"
    done = subprocess.run([*ALONE[:2], "-c", look], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_server_serves_and_ends_cleanly(tmp_path: Path) -> None:
    file, store = tmp_path / "broker.conf", tmp_path / "store"
    file.write_text(SMALL)
    words = ("server", "--namesrv-port", 0, "--broker-port=0", "--store", store, "-c", file)
    with serving(*words, command=ALONE, env=ENVIRONMENT) as (process, ready):
        assert send(ready["broker"], "orders", b"paid").code == 0
        assert b"paid" in pull(ready["broker"], "orders").body
        assert end(process) == f"store: {store}\nstopped\n"
    assert not (store / "abort").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("server", "-p"),
        ("server", "-p", "--namesrv-port", "5", "--broker-port", "1234", "--store", "s", "--insecure-bind"),
        ("broker", "-p", "-n", "127.0.0.1:1;127.0.0.1:2"),
        ("broker", "--print-config", "--insecure-bind"),
        ("namesrv", "-p", "--port", "77", "--insecure-bind"),
        ("broker", "-p", "-c", "broker.conf", "--name-server=127.0.0.1:1"),
    ],
    ids=" ".join,
)
def test_options_mean_what_they_mean_with_the_extra(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broker.conf").write_text("brokerName=b\n")
    monkeypatch.chdir(tmp_path)
    alone, typer = run_alone(*words), run(*words)
    assert alone.stdout == typer.stdout != ""
    assert (alone.returncode, alone.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("server", "--namesrv-port", "65536"), "expected 0 to 65535, got 65536"),
        (("server", "--broker-port", "many"), "invalid int value: 'many'"),
        (("broker", "-c", "nowhere.conf"), "expected a file, got nowhere.conf"),
        (("server", "--secure", sys.executable), "expected a directory, got"),
        (("server", "--secure", "new", "-c", sys.executable), "expected --secure or --config, got both"),
        (("namesrv", "--colour", "red"), "--colour"),
        (("namesrv", "--por", "1"), "--por"),
    ],
)
def test_a_mistake_is_exit_code_2_as_with_the_extra(
    words: tuple[str, ...], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    alone = run_alone(*words)
    assert (alone.returncode, alone.stdout, run(*words).exit_code) == (2, "", 2)
    assert reason in alone.stderr


def test_an_acl_file_needs_one_library_and_the_line_says_which(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "plain_acl.yml").write_text("accounts: []\n")
    file = tmp_path / "broker.conf"
    file.write_text(
        f"{SMALL}aclEnable=true\nrocketmqHome={tmp_path}\nlistenPort=0\nstorePathRootDir={tmp_path / 's'}\n"
    )
    done = run_alone("broker", "-c", file)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"store: {tmp_path / 's'}\nerror: PyYAML is needed for this: pip install 'rmqfast[broker]'\n"


def test_help_lists_what_runs_and_names_the_extra() -> None:
    for words in ((), ("--help",)):
        done = run_alone(*words)
        assert (done.returncode, done.stderr) == (0, "")
        assert "pip install 'rmqfast[cli]'" in " ".join(done.stdout.split())
        assert {"server", "namesrv", "broker"} <= set(done.stdout.split())
    assert "Default: a temporary one" in " ".join(run_alone("server", "--help").stdout.split())


@pytest.mark.parametrize("words", [("store", "info", "x"), ("--install-completion",), ("servr",)], ids=" ".join)
def test_what_needs_the_extra_says_what_to_type(words: tuple[str, ...]) -> None:
    done = run_alone(*words)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "the command line needs rich: pip install 'rmqfast[cli]'\n"


def test_the_version_needs_nothing_and_loads_the_extension_alone() -> None:
    assert run_alone("--version").stdout == f"rmqfast {rmqfast.__version__}\n"
    look = (
        "import sys; from rmqfast.cli import main; sys.argv[1:] = ['--version']; main();"
        "print(sorted(n for n in sys.modules if n.startswith('rmqfast')))"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    extension = ["rmqfast._native", "rmqfast._native._rmqfast"]
    assert done.stdout.splitlines()[1] == str(
        ["rmqfast", *extension, "rmqfast.cli", "rmqfast.cli.streams", "rmqfast.errors", "rmqfast.version"]
    )
