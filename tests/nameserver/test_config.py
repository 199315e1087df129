"""How a name server is set up, told and changed."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from rmqfast.errors import ArgumentError
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import RemotingClient, RequestCode, properties
from tests.nameserver.registration import ask

#: What a 4.9.4 name server answered to 319, with other paths.
TOLD = """serverSocketBacklog=1024
writeBufferHighWaterMark=0
serverWorkerThreads=8
serverSelectorThreads=3
serverChannelMaxIdleTimeSeconds=120
writeBufferLowWaterMark=0
serverSocketRcvBufSize=0
serverAsyncSemaphoreValue=64
kvConfigPath=/mq/kvConfig.json
configStorePath=ns.conf
clusterTest=false
orderMessageEnable=true
serverSocketSndBufSize=0
serverOnewaySemaphoreValue=256
serverCallbackExecutorThreads=0
listenPort=29976
rocketmqHome=/mq/home
productEnvName=center
useEpollNativeSelector=false
serverPooledByteBufAllocatorEnable=true
"""
#: The order in which `-p` printed the same.
PRINTED = """rocketmqHome kvConfigPath configStorePath productEnvName clusterTest orderMessageEnable listenPort
serverWorkerThreads serverCallbackExecutorThreads serverSelectorThreads serverOnewaySemaphoreValue
serverAsyncSemaphoreValue serverChannelMaxIdleTimeSeconds serverSocketSndBufSize serverSocketRcvBufSize
writeBufferHighWaterMark writeBufferLowWaterMark serverSocketBacklog serverPooledByteBufAllocatorEnable
useEpollNativeSelector"""


def without_ours(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("bindAddress=")]


def test_the_configuration_is_told_as_rocketmq_tells_it() -> None:
    config = NamesrvConfig.from_text(TOLD)
    assert sorted(without_ours(config.to_text())) == sorted(TOLD.splitlines())
    assert properties.dumps(properties.loads(TOLD)) == TOLD
    assert "bindAddress=127.0.0.1\n" in config.to_text()
    assert [line.partition("=")[0] for line in without_ours(config.printed())] == PRINTED.split()


def test_a_file_is_read_and_changes_go_there(tmp_path: Path) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text("# a comment\nlistenPort = 9999\nkvConfigPath=/somewhere\nclusterTest=TRUE\n")
    config = NamesrvConfig.from_file(path)
    assert (config.listen_port, config.kv_config_path, config.cluster_test) == (9999, "/somewhere", True)
    config.update({"orderMessageEnable": "true"})
    again = NamesrvConfig.from_file(path)
    assert again == config
    assert again.order_message_enable


def test_unknown_properties_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        NamesrvConfig.from_text("listnPort=1\nserverWorkerThreads=4")
    assert [record.getMessage() for record in caplog.records] == ["namesrv.conf: unknown property listnPort"]


@pytest.mark.parametrize("value", ["abc", "", "-1", "1.5", "99999999999"])
def test_a_value_of_another_type_is_refused(value: str) -> None:
    with pytest.raises(ArgumentError, match="listenPort: expected a number"):
        NamesrvConfig.from_text(f"listenPort={value}")


@pytest.mark.parametrize("name", ["kvConfigPath", "configStorePath"])
@pytest.mark.parametrize(
    ("path", "expected"),
    [("", r"expected a path \(\. is the current directory\), got ''"), ("s3://b/x", "expected a path of this machine")],
)
def test_a_path_that_is_none_is_refused(name: str, path: str, expected: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{name}: {expected}"):
        NameServer(NamesrvConfig.from_text(f"{name}={path}"))


def test_a_path_may_be_a_file_url(tmp_path: Path) -> None:
    config = NamesrvConfig.from_text(f"kvConfigPath=file://{tmp_path}/a%20b.json\nlistenPort=0")
    with NameServer(config) as server, RemotingClient(server.address) as client:
        client.ask(RequestCode.PUT_KV_CONFIG, {"namespace": "n", "key": "k", "value": "v"})
    assert (tmp_path / "a b.json").exists()


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no such file"):
        NamesrvConfig.from_file(tmp_path / "namesrv.conf")


def test_a_request_changes_what_it_may(server: NameServer, config: NamesrvConfig) -> None:
    answer = ask(server, 318, body=b"orderMessageEnable=true\nnobodyKnows=1\n")
    assert (answer.code, answer.remark) == (0, None)
    assert config.order_message_enable
    assert properties.loads(ask(server, 319).body.decode()) == config.properties()
    assert properties.loads(Path(config.config_store_path).read_text()) == config.properties()
    assert ask(server, 318).code == 0


@pytest.mark.parametrize(
    "text",
    ["kvConfigPath=/etc/cron.d/x", "configStorePath=/etc/passwd", "listenPort=1", "bindAddress=0.0.0.0",
     "rocketmqHome=/", "clusterTest=true\nkvConfigPath=../x"],
)  # fmt: skip
def test_a_request_names_no_file_and_no_address(server: NameServer, config: NamesrvConfig, text: str) -> None:
    before = config.properties()
    answer = ask(server, 318, body=text.encode())
    assert answer.code == 16
    assert answer.remark is not None
    assert answer.remark.startswith("a request does not change ")
    assert config.properties() == before
    assert not Path(config.config_store_path).exists()


@pytest.mark.parametrize("text", [b"productEnvName=a\\nlistenPort=1", b"productEnvName=\\u0000"])
def test_a_request_does_not_bring_a_line_of_its_own(server: NameServer, config: NamesrvConfig, text: bytes) -> None:
    answer = ask(server, 318, body=text)
    assert answer.code == 1
    assert (answer.remark or "").startswith("productEnvName: no text of one line: ")
    assert config.product_env_name == "center"


def test_half_an_escape_is_answered_as_rocketmq_does(server: NameServer) -> None:
    answer = ask(server, 318, body=b"a=\\u12")
    assert (answer.code, answer.remark) == (1, "string2Properties error")
