"""`rmqfast server`, `namesrv` and `broker`: real processes that serve until they are told to stop."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from rmqfast.broker import Broker, BrokerConfig
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import decode
from tests.cli.command_line import COMMAND, run
from tests.dashboard.visitor import Visitor
from tests.embedded.client import pull, send, update_config
from tests.waiting import until

SMALL = "mappedFileSizeCommitLog=1048576\nmaxHashSlotNum=1000\nmaxIndexNum=4000\n"
#: `conf/broker.conf` of the distribution of 4.9.4.
SHIPPED = """
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = ASYNC_FLUSH
"""


@contextmanager
def serving(
    *arguments: object, command: Sequence[str] = COMMAND, env: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """The process, and the addresses of its line `ready`."""
    words = [*command, *map(str, arguments)]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            if words[:1] != ["ready"]:
                process.kill()
                pytest.fail(f"not ready: {words} {process.communicate()}")
            yield process, dict(word.split("=", 1) for word in words[1:])
        finally:
            process.kill()


def end(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> str:
    """Ends it cleanly; what it said."""
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert said.endswith("stopped\n")
    return said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_says_when_it_is_ready_and_saves_everything_when_it_is_told_to_stop(
    number: int, tmp_path: Path
) -> None:
    store, file = tmp_path / "store", tmp_path / "broker.conf"
    file.write_text(SMALL)
    offset = {"consumerGroup": "G", "topic": "orders", "queueId": "0"}
    with serving("server", "--namesrv-port", 0, "--broker-port", 0, "--store", store, "-c", file) as (process, told):
        assert told.keys() == {"name_server", "broker"}
        assert send(told["broker"], "orders", b"paid").code == 0
        with RemotingClient(told["broker"]) as client:
            client.send_oneway(RequestCode.UPDATE_CONSUMER_OFFSET, offset | {"commitOffset": "1"})
            until(lambda: client.request(RequestCode.QUERY_CONSUMER_OFFSET, offset).ext_fields == {"offset": "1"})
        assert (store / "abort").exists()
        assert end(process, number) == f"store: {store}\nstopped\n"
    assert not (store / "abort").exists()
    saved = decode((store / "config" / "consumerOffset.json").read_bytes())
    assert saved["offsetTable"]["orders@G"] == {0: 1}


@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "secure"])
def test_a_server_shows_pages_about_itself(tmp_path: Path, is_secure: bool) -> None:
    own = ("--secure", tmp_path / "secure") if is_secure else ()
    words = ("server", "--namesrv-port", 0, "--broker-port", 0, "--dashboard", 0, *own)
    with serving(*words) as (process, told):
        address = told["dashboard"].removeprefix("http://").removesuffix("/")
        with Visitor(address) as visitor:
            assert visitor.log_in(told["password"]).status == 303
            until(lambda: visitor.get("/brokers.json").json["brokers"])
            assert visitor.get("/topics.json").status == 200
        assert end(process, signal.SIGTERM).endswith("stopped\n")


def test_a_name_server_and_a_broker_are_processes_of_their_own(tmp_path: Path) -> None:
    names, file = tmp_path / "namesrv.conf", tmp_path / "broker.conf"
    names.write_text(f"kvConfigPath={tmp_path / 'kv.json'}\nmetricsPort=0\n")
    file.write_text(f"{SMALL}listenPort=0\nbrokerName=b\nstorePathRootDir={tmp_path / 'store'}\nmetricsPort=0\n")
    with (
        serving("namesrv", "--port", 0, "-c", names) as (name_server, told),
        serving("broker", "-c", file, "-n", told["name_server"]) as (broker, own),
    ):
        with RemotingClient(told["name_server"]) as client:
            assert own["broker"].encode() in client.request(RequestCode.GET_BROKER_CLUSTER_INFO).body
        assert send(own["broker"], "orders", b"x").code == 0
        for address, sample in ((own["metrics"], b'topic="orders"'), (told["metrics"], b"rmqfast_name_server_brokers")):
            with urlopen(address, timeout=30) as metrics:  # noqa: S310 - of this machine
                assert sample in metrics.read()
        assert update_config(own["broker"], transactionCheckMax="3").code == 0
        assert "transactionCheckMax=3" in file.read_text().splitlines()
        end(broker)
        with RemotingClient(told["name_server"]) as client:
            assert own["broker"].encode() not in client.request(RequestCode.GET_BROKER_CLUSTER_INFO).body
        end(name_server)


def test_the_file_that_rocketmq_ships_works_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(SHIPPED)
    with serving("server", "--namesrv-port", 0, "--broker-port", 0, "-c", file) as (process, told):
        assert send(told["broker"], "orders", b"paid").code == 0
        assert b"paid" in pull(told["broker"], "orders").body
        assert end(process) == "stopped\n"


@pytest.mark.parametrize("command", ["broker", "server"])
def test_the_configuration_is_printed_and_nothing_started(command: str, tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(SHIPPED + f"listenPort=1234\nstorePathRootDir={tmp_path / 'store'}\n")
    result = run(command, "-c", file, "-p")
    lines = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert {"brokerName=broker-a", "listenPort=1234", "fileReservedTime=48", "maxMessageSize=4194304"} <= set(lines)
    assert lines == sorted(lines)
    assert not (tmp_path / "store").exists()
    assert run("namesrv", "-p", "--port", "77").stdout.count("listenPort=77\n") == 1


def test_keys_that_nobody_knows_are_named_and_have_no_effect(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(SMALL + "brokerNaem=typo\n")
    with serving("server", "--namesrv-port", 0, "--broker-port", 0, "-c", file) as (process, _):
        assert "unknown keys, which have no effect: brokerNaem" in end(process)


def test_all_ports_are_of_loopback_unless_told_otherwise() -> None:
    with serving("server", "--namesrv-port", 0, "--broker-port", 0) as (process, told):
        for address in told.values():
            host, _, port = address.rpartition(":")
            assert host == "127.0.0.1"
            hexadecimal = f":{int(port):04X} 00000000:0000 0A"
            listening = [
                line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines() if hexadecimal in line
            ]
            assert [each.partition(":")[0] for each in listening] == ["0100007F"]
        end(process)


def test_a_port_that_is_taken_ends_with_3_and_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments in (
            ("server", "--namesrv-port", port, "--broker-port", "0"),
            ("server", "--namesrv-port", "0", "--broker-port", port),
            ("namesrv", "--port", port),
        ):
            result = run(*arguments)
            assert (result.exit_code, result.stdout) == (3, "")
            assert f"127.0.0.1:{port}" in result.stderr
            assert "another port" in result.stderr
            assert len(result.stderr.splitlines()) == 1


def test_a_store_that_somebody_has_ends_with_3_and_says_what_to_do(tmp_path: Path) -> None:
    own = dict(line.split("=") for line in SMALL.split()) | {"storePathRootDir": str(tmp_path), "listenPort": "0"}
    with Broker(BrokerConfig(own)):
        result = run("server", "--namesrv-port", "0", "--broker-port", "0", "--store", tmp_path)
    assert (result.exit_code, result.stdout) == (3, "")
    assert str(tmp_path) in result.stderr
    assert "another store" in result.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("listenPort=many\n", "listenPort: expected a whole number of 32 bits, got 'many'"),
        ("messageDelayLevel=soon\n", "messageDelayLevel"),
        ("listenPort=65536\n", "listenPort: expected a port"),
        ("brokerRole=FOLLOWER\n", "brokerRole: expected ASYNC_MASTER or SYNC_MASTER or SLAVE"),
        ("aclEnable=true\n", "rocketmqHome"),
        ("brokerName=a\\u00\n", "hexadecimal"),
    ],
)
def test_a_bad_value_ends_with_2_and_names_the_key(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(text)
    result = run("server", "--namesrv-port", "0", "-c", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert isinstance(result.exception, SystemExit)


def test_sigterm_while_it_starts_ends_it_cleanly(tmp_path: Path) -> None:
    store = tmp_path / "store"
    command = [*COMMAND, "server", "--namesrv-port", "0", "--broker-port", "0", "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until(store.exists)
        process.terminate()
        _, said = process.communicate()
    assert (process.returncode, said) == (0, f"store: {store}\nstopped\n")
    assert not (store / "abort").exists()


def test_sigterm_during_a_recovery_ends_it_and_the_next_start_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(SMALL)
    arguments = ("server", "--namesrv-port", 0, "--broker-port", 0, "--store", tmp_path / "store", "-c", file)
    with serving(*arguments) as (process, told):
        assert send(told["broker"], "orders", b"kept").code == 0
        process.kill()
        process.communicate()
    code = (
        "import os, signal, sys\n"
        "from rmqfast.cli import server\n"
        "from rmqfast.cli.app import app\n"
        "go_on = server._stop_recovery\n"
        "def told(signals, *progress):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    go_on(signals, *progress)\n"
        "server._stop_recovery = told\n"
        "app(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    stopped = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    assert (stopped.returncode, stopped.stdout) == (0, "")
    assert "stopped while the store was recovered" in stopped.stderr
    with serving(*arguments) as (process, told):
        assert b"kept" in pull(told["broker"], "orders").body
        process.terminate()
        assert process.communicate()[1].endswith("stopped\n")


def test_a_server_starts_without_libraries_that_it_does_not_need() -> None:
    look = "sorted({'numpy', 'pandas', 'pyarrow', 'pyspark', 'yaml'} & set(sys.modules))"
    command = [sys.executable, "-c", f"import sys, rmqfast.cli.app; print({look})"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_exporter_tells_the_metrics_of_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(SMALL)
    with (
        serving("server", "--namesrv-port", 0, "--broker-port", 0, "-c", file) as (_, cluster),
        serving("exporter", "-n", cluster["name_server"], "--port", 0) as (process, told),
    ):
        with urlopen(told["metrics"], timeout=30) as metrics:  # noqa: S310 - of this machine
            assert b'rmqfast_up{cluster="DefaultCluster",node_type="broker",node_id="broker-a"} 1' in metrics.read()
        assert end(process) == "stopped\n"
    refused = run("exporter", "-n", "127.0.0.1:1", "--port", "0")
    assert (refused.exit_code, refused.stdout) == (3, "")
