"""Help: what each command's ends with, and that it can be pasted."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import rmqfast
from rmqfast import AppendOptions, EmbeddedCluster, LitePullConsumer, Message, MessageQueue, Producer
from rmqfast.admin import Admin
from rmqfast.cli.app import app
from rmqfast.cli.examples import EXAMPLES
from rmqfast.client.lite_pull import LitePullOptions
from tests.waiting import collect

SMALL = AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=1000, index_entries=4000)
ALL = [(command, line) for command, lines in EXAMPLES.items() for line in lines]
#: What goes on until it is ended, needs Spark, a catalog or another machine, or a message of an id; only parsed.
PARSED_ONLY = {
    "rmqfast dashboard -n 127.0.0.1:9876",
    "rmqfast dashboard --read-only --host 10.0.0.7 --profile prod",
    "rmqfast alarms -n 127.0.0.1:9876",
    "rmqfast alarms --lag 10000 --silent orders=600 -o jsonl",
    "rmqfast alarms --webhook https://hooks.example/rocketmq --profile prod",
    "rmqfast doctor -n 127.0.0.1:9876",
    "rmqfast doctor --spark -o json",
    "rmqfast store tail ~/store --topic orders --tags paid -f -o jsonl",
    "rmqfast ingest -n 127.0.0.1:9876 --format delta --out orders --every 60s",
    "rmqfast ingest ~/store --format iceberg --catalog lake --out shop.orders",
    "rmqfast mirror ~/copies --all-brokers -n 127.0.0.1:9876",
    "rmqfast topic show orders --watch 5 -n 127.0.0.1:9876",
    "rmqfast topic list --all --profile prod",
    "rmqfast group show cashiers --watch -n 127.0.0.1:9876",
    "rmqfast message trace 7F0000010F2A18B4AAC2000000000000",
    "rmqfast consume orders --group audit --from first -n 127.0.0.1:9876",
    "rmqfast demo --size-mib 64",
    "rmqfast watch --out shop.history -n 127.0.0.1:9876",
    "rmqfast watch --out shop.history --group cashiers --profile prod",
    "rmqfast explain --topic orders --id 7F00 --history shop.history",
    "rmqfast exporter -n 127.0.0.1:9876",
    "rmqfast exporter --host 10.0.0.7 --port 5557 --profile prod",
    "rmqfast server --store ~/store -c broker.conf",
    "rmqfast server --dashboard 8080",
    "rmqfast namesrv",
    "rmqfast broker -c broker.conf -n 127.0.0.1:9876",
}
#: Exit code 1 has a reason: nothing was changed yet, or the doctor found something, as a disk that is full.
SAYS_WHAT_IT_WOULD_DO = "nothing was changed"
SAYS_WHAT_IT_FOUND = "problem disk-full"


def leaves(command: Any, prefix: str = "") -> Iterator[str]:
    """The words of all commands below a group."""
    for name, each in command.commands.items():
        words = f"{prefix}{name}"
        yield from leaves(each, f"{words} ") if hasattr(each, "commands") else [words]


def test_every_command_has_one_to_three_examples_of_its_own() -> None:
    assert set(leaves(typer.main.get_command(app))) == set(EXAMPLES)
    for command, lines in EXAMPLES.items():
        assert 1 <= len(lines) <= 3
        assert all(line == f"rmqfast {command}" or line.startswith(f"rmqfast {command} ") for line in lines)


@pytest.mark.parametrize("command", EXAMPLES)
def test_help_ends_with_the_examples_and_fits_80_columns(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"], prog_name="rmqfast", env={"COLUMNS": "80"})
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    examples = lines[lines.index("  Examples:") + 1 :]
    assert [line.strip() for line in examples] == list(EXAMPLES[command])


@pytest.mark.parametrize("line", [line for _, line in ALL])
def test_an_example_parses(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broker.conf").touch()
    words = shlex.split(line.partition(" < ")[0])[1:]
    context = typer.main.get_command(app).make_context("rmqfast", words)
    with context:
        while hasattr(context.command, "commands"):
            left = [*context._protected_args, *context.args]  # noqa: SLF001 - where a group keeps what is its command's
            group: Any = context.command
            name, command, words = group.resolve_command(context, left)
            context = command.make_context(name, words, parent=context)
    assert context.command.name


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """A cluster with what the examples speak of."""
    with EmbeddedCluster() as running, Admin(name_server=running.name_server) as admin:
        for topic in ("orders", "bills", "%DLQ%cashiers"):
            admin.create_topic(topic, 1)
        for group in ("cashiers", "auditors", "clerks"):
            admin.create_group(group)
        with Producer("shop", name_server=running.name_server) as producer:
            for body in (b"one", b"two"):
                producer.send(Message("orders", body, keys="42", tags="paid"))
            producer.send(Message("%DLQ%cashiers", b"three", properties={"RETRY_TOPIC": "orders"}))
            admin.offsets.reset("cashiers", MessageQueue("orders", "broker-a", 0), 0)
            manual = LitePullOptions(auto_commit=False)
            member = LitePullConsumer("cashiers", name_server=running.name_server, options=manual)
            member.subscribe("orders")
            with member:
                collect(lambda: member.poll(0.2), 2)
                yield running


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with rmqfast.open_store(tmp_path / "store", mode="a", options=SMALL) as store:
        for number in range(4):
            store.append(Message("orders", b'{"id": %d}' % number, keys="42", tags="paid", properties={"region": "eu"}))
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    (tmp_path / "bodies.txt").write_text("one\ntwo\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", [line for _, line in ALL if line not in PARSED_ONLY])
def test_an_example_runs(line: str, cluster: EmbeddedCluster, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", cluster.name_server)
    text, _, source = line.replace("127.0.0.1:9876", cluster.name_server).partition(" < ")
    words = [str(Path(word).expanduser()) if word.startswith("~") else word for word in shlex.split(text)[1:]]
    lines = (home / source).read_bytes() if source else None
    result = CliRunner().invoke(app, words, prog_name="rmqfast", input=lines)
    if result.exit_code == 1:
        assert SAYS_WHAT_IT_WOULD_DO in result.stderr or SAYS_WHAT_IT_FOUND in result.stdout, result.output
    else:
        assert (result.exit_code, "error" in result.stderr) == (0, False), result.output


def test_what_is_parsed_only_is_an_example() -> None:
    assert {line for _, line in ALL} >= PARSED_ONLY
