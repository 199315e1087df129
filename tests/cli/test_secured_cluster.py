"""A cluster as docs/security.md has it made: followed from its first line."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqfast.acl import SecureDirectory
from rmqfast.errors import ArgumentError, RemotingError
from rmqfast.remoting import RemotingClient, RequestCode, TlsOptions
from tests.cli.command_line import COMMAND, run
from tests.cli.test_server import end, serving
from tests.examples.documents import blocks_of
from tests.examples.readers_shell import ReadersShell, sh_blocks
from tests.interop import rocketmq

PAGE = Path(__file__).parents[2] / "docs" / "security.md"


class Secured:
    """A running cluster: its directory and addresses."""

    def __init__(self, directory: Path, addresses: dict[str, str]) -> None:
        self.directory = directory
        self.name_server, self.broker = addresses["name_server"], addresses["broker"]
        self.accounts = tomllib.loads((directory / "rmqfast.toml").read_text())["profiles"]

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What our command line says, with the directory's profiles."""
        environment = os.environ | {"XDG_CONFIG_HOME": str(self.directory), "RMQFAST_NAME_SERVER": self.name_server}
        command = [*COMMAND, *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("security") / "mq"
    ports = ("--namesrv-port", "0", "--broker-port", "0")
    with serving("server", "--secure", directory, *ports) as (process, addresses):
        yield Secured(directory, addresses)
        end(process)


def commands_of_page() -> list[list[str]]:
    """The commands of our command line, as the page shows them."""
    [block] = [
        part for part in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL) if "XDG_CONFIG_HOME" in part
    ]
    return [line.split()[1:] for line in block.splitlines() if line.startswith("rmqfast ")]


def test_the_commands_of_the_page_reach_the_cluster(secured: Secured) -> None:
    commands = commands_of_page()
    assert len(commands) == 3
    for words in commands:
        done = secured.command(*words)
        assert done.returncode == 0, (words, done.stderr)
    assert "hello" in done.stdout


@pytest.mark.long
def test_the_page_starts_it_for_this_machine_and_for_others(tmp_path: Path) -> None:
    (local, for_others), used = sh_blocks(PAGE.name)
    assert len(used) == 4  # the commands of the test above, and the variable that they need
    assert {block.language for block in blocks_of(PAGE.name)} == {"sh"}
    shell = ReadersShell(tmp_path, {"rmqfast server": "rmqfast server --namesrv-port 0 --broker-port 0"})
    with serving(command=shell.words(local), env=shell.environment) as (process, told):
        assert told["broker"].startswith("127.0.0.1:")
        said = end(process, signal.SIGINT)
    assert f"accounts, certificates and configuration are in {tmp_path}/mq;" in said
    # tests listen on loopback alone, so this one shows what it would do; a directory stays as its first start made it
    shell = ReadersShell(tmp_path, {"~/mq": "~/mq-of-others"})
    printed = shell.run(f"{for_others} -p").splitlines()
    assert {"bindAddress=0.0.0.0", "brokerIP1=10.0.0.5", "aclEnable=true"} <= set(printed)
    assert (tmp_path / "mq-of-others/ca.pem").exists()


def test_all_files_are_their_owners_alone(secured: Secured) -> None:
    paths = [secured.directory, *secured.directory.rglob("*")]
    assert len(paths) > 15
    assert [path for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_nobody_gets_in_without_tls_or_without_an_account(secured: Secured, tmp_path: Path) -> None:
    other = str(SecureDirectory.at(tmp_path / "other").path / "ca.pem")
    tls = TlsOptions(trust=str(secured.directory / "ca.pem"))
    for address in (secured.name_server, secured.broker):
        with RemotingClient(address) as plain, pytest.raises(RemotingError):
            plain.request(RequestCode.GET_BROKER_CLUSTER_INFO)
        with RemotingClient(address, tls=tls) as nobody:
            accepted = [code for code in RequestCode if nobody.request(code, timeout=30.0).code == 0]
            assert accepted == []
        with RemotingClient(address, tls=TlsOptions(trust=other)) as distrusting, pytest.raises(RemotingError):
            distrusting.request(RequestCode.GET_BROKER_CLUSTER_INFO)


def test_a_second_start_uses_what_is_there_and_other_directories_stay_as_they_are(tmp_path: Path) -> None:
    made = SecureDirectory.at(tmp_path / "a")
    before = {path: path.read_bytes() for path in made.path.rglob("*") if path.is_file()}
    assert SecureDirectory.at(tmp_path / "a", address="10.0.0.1") == made
    assert before == {path: path.read_bytes() for path in made.path.rglob("*") if path.is_file()}
    assert "secret" not in repr(made).lower()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").touch()
    with pytest.raises(ArgumentError, match=r"expected conf/plain_acl\.yml in it, or an empty directory"):
        SecureDirectory.at(tmp_path / "b")
    result = run("server", "--secure", tmp_path / "a", "-c", made.config)
    assert result.exit_code != 0
    assert "expected --secure or --config" in result.stderr


def test_an_address_of_the_network_is_listened_at_and_certified(tmp_path: Path) -> None:
    made = SecureDirectory.at(tmp_path / "a", address="192.0.2.7")
    lines = made.config.read_text().splitlines()
    assert {"bindAddress=0.0.0.0", "brokerIP1=192.0.2.7", "aclEnable=true", "tls.server.mode=enforcing"} <= set(lines)
    shown = subprocess.run(
        ["openssl", "x509", "-in", made.path / "server.pem", "-noout", "-text"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "IP Address:192.0.2.7" in shown
    subprocess.run(["openssl", "verify", "-CAfile", made.path / "ca.pem", made.path / "server.pem"], check=True)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_javas_client_sends_and_consumes_with_its_account(secured: Secured) -> None:
    def java(account: dict[str, str], program: str, *words: str) -> list[dict[str, object]]:
        properties = {
            "tls.enable": "true",
            "tls.config.file": str(secured.directory / "client.properties"),
            "rmqlab.accessKey": account["access_key"],
            "rmqlab.secretKey": account["secret_key"],
        }
        flags = " ".join(f"-D{key}={value}" for key, value in properties.items())
        words = (*words, "--namesrv", secured.name_server, "--topic", "java", "--count", "20")
        printed = rocketmq.java("4.9.4", program, *words, extra=flags, seconds=120, check=False)
        return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]

    account = secured.accounts["default"]
    sent = java(account, "Produce")
    assert [line.get("sendStatus") for line in sent] == ["SEND_OK"] * 20
    seen = java(account, "Consume", "--mode", "push", "--group", "java-readers", "--idle-ms", "20000")
    assert {line["msgId"] for line in seen} == {line["msgId"] for line in sent}
    refused = java(account | {"secret_key": "0" * 48}, "Produce")
    assert not [line for line in refused if line.get("sendStatus") == "SEND_OK"]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_mqadmin_takes_the_administrators_account_from_its_file(secured: Secured, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "logback_tools.xml").write_text("<configuration/>")
    properties = {
        "tls.enable": "true",
        "tls.config.file": secured.directory / "client.properties",
        "rocketmq.home.dir": tmp_path,
    }
    flags = " ".join(f"-D{key}={value}" for key, value in properties.items())

    def mqadmin(*words: str) -> str:
        words = (*words, "-n", secured.name_server)
        return rocketmq.java("4.9.4", "Admin", *words, extra=flags, seconds=200, check=False)

    make = ("updateTopic", "-c", "DefaultCluster", "-t", "of-mqadmin")
    assert "create topic to" not in mqadmin(*make)
    shutil.copy(secured.directory / "conf" / "tools.yml", tmp_path / "conf")
    assert "create topic to" in mqadmin(*make)
    assert "of-mqadmin" in mqadmin("topicList")
