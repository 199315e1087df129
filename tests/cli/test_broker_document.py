"""The commands and the code of `docs/broker.md` run as they stand; `pip`, `mqadmin` and `docker` are left out."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from rmqfast.errors import RemotingError
from rmqfast.remoting import RemotingClient, RequestCode, TlsOptions
from tests.cli.test_server import end, serving
from tests.embedded.client import send
from tests.examples.documents import blocks_of, check_code
from tests.examples.readers_shell import ReadersShell, sh_blocks

pytestmark = pytest.mark.long
DOCUMENT = "broker.md"
SERVERS, MQADMIN, DOCKER, TLS = sh_blocks(DOCUMENT)
#: No test takes a port that is another's.
ANY_PORTS = {
    "rmqfast server": "rmqfast server --namesrv-port 0 --broker-port 0",
    "rmqfast namesrv": "rmqfast namesrv --port 0",
}


def test_each_command_and_block_is_of_one_of_the_tests() -> None:
    assert [len(block) for block in (SERVERS, TLS)] == [5, 6]
    # RocketMQ's own program, and Docker: `tests/cli/test_image.py` has what the containers start
    assert {command.split()[0] for command in MQADMIN + DOCKER} == {"mqadmin", "docker"}
    assert [block.language for block in blocks_of(DOCUMENT) if block.language != "sh"] == ["python", "python"]


def test_servers_start_with_the_readers_files_and_end_by_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("brokerName=readers\nlistenPort=0\n")
    (tmp_path / "namesrv.conf").write_text(f"kvConfigPath={tmp_path}/kv.json\n")
    shell = ReadersShell(tmp_path, ANY_PORTS)
    both, with_store, names, broker, printed = SERVERS
    with serving(command=shell.words(both), env=shell.environment) as (process, told):
        assert send(told["broker"], "orders", b"paid").code == 0
        end(process, signal.SIGINT)
    assert not (tmp_path / "store").exists()
    with serving(command=shell.words(with_store), env=shell.environment) as (process, told):
        assert send(told["broker"], "orders", b"paid").code == 0
        end(process, signal.SIGINT)
    assert "orders" in shell.run("rmqfast store info ~/store")
    with serving(command=shell.words(names), env=shell.environment) as (name_server, told):
        shell = ReadersShell(tmp_path, {"127.0.0.1:9876": told["name_server"]})
        with serving(command=shell.words(broker), env=shell.environment) as (process, own):
            assert own["broker"] in shell.run("rmqfast cluster show -n 127.0.0.1:9876")
            end(process, signal.SIGINT)
        end(name_server, signal.SIGINT)
    assert "brokerName=readers" in shell.run(printed).splitlines()


def test_an_embedded_cluster_has_an_address(tmp_path: Path) -> None:
    check_code(DOCUMENT, chosen=lambda code: "EmbeddedCluster" in code)


def test_a_cluster_with_mutual_tls_takes_who_has_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = ReadersShell(tmp_path, ANY_PORTS)
    *files, server = TLS
    for command in files:
        shell.run(command)
    monkeypatch.chdir(tmp_path)
    with serving(command=shell.words(server), env=shell.environment) as (process, told):
        readers = {"localhost:9876": told["name_server"].replace("127.0.0.1", "localhost")}
        check_code(DOCUMENT, readers=readers, chosen=lambda code: "TlsOptions" in code)
        for address in told.values():
            with RemotingClient(address, tls=TlsOptions(trust="ca.pem")) as nobody, pytest.raises(RemotingError):
                nobody.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
        end(process, signal.SIGINT)
