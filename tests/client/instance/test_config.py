"""What a client is told of its cluster and of itself."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Sequence

import pytest

from rmqfast.client.instance import ClientConfig
from rmqfast.errors import ArgumentError
from rmqfast.remoting import TlsOptions
from rmqfast.remoting.credentials import Credentials

SECRET, TOKEN = "hidden", "hidden-too"
#: Of the example in Java's tests.
JAVAS_SECRET = "12345678"  # noqa: S105


def test_name_servers_come_from_the_environment_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "env:9876; env2:9876")
    assert ClientConfig().name_servers == ("env:9876", "env2:9876")
    assert ClientConfig(name_server="given:9876").name_servers == ("given:9876",)


def test_without_any_there_is_none_and_nothing_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    assert ClientConfig().name_servers == ()


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("a:1;b:2;", ("a:1", "b:2")),
        (["a:1", "b:2"], ("a:1", "b:2")),
        ("a:1;a:1", ("a:1",)),
        ("[::1]:9876", ("[::1]:9876",)),
        ("", ()),
    ],
)
def test_name_servers_are_a_text_or_a_sequence(given: str | Sequence[str], read: tuple[str, ...]) -> None:
    assert ClientConfig(name_server=given).name_servers == read


@pytest.mark.parametrize("wrong", ["host", "host:", "host:0", "host:65536", "host:x", "a b:1", "::1:9876", "a:1,b:2"])
def test_what_is_no_address_is_refused_and_said(wrong: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape("expected host:port, several separated by ';'")):
        ClientConfig(name_server=wrong)


def test_an_endpoint_of_an_instance_names_the_namespace() -> None:
    config = ClientConfig(name_server="http://MQ_INST_123_abc.example.org:80")
    assert (config.name_servers, config.namespace) == (("MQ_INST_123_abc.example.org:80",), "MQ_INST_123_abc")
    assert ClientConfig(name_server="http://MQ_INST_123_abc.example.org:80", namespace="own").namespace == "own"


def test_secrets_do_not_show() -> None:
    config = ClientConfig(name_server="a:1", access_key="me", secret_key=SECRET, security_token=TOKEN)
    assert "me" in repr(config)
    assert SECRET not in repr(config)
    assert TOKEN not in repr(config)


@pytest.mark.parametrize("half", [{"access_key": "a"}, {"secret_key": "b"}])
def test_half_of_an_account_is_refused(half: dict[str, str]) -> None:
    with pytest.raises(ArgumentError, match="access_key and secret_key"):
        ClientConfig(name_server="a:1", **half)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_intervals_are_positive(seconds: float) -> None:
    with pytest.raises(ArgumentError, match="heartbeat_interval"):
        ClientConfig(name_server="a:1", heartbeat_interval=seconds)


def test_certificates_are_verified_unless_said_otherwise() -> None:
    with pytest.raises(ArgumentError, match="trust"):
        ClientConfig(name_server="a:1", tls=TlsOptions())
    tls = ClientConfig(name_server="a:1", tls=TlsOptions(verify=False)).tls
    assert tls is not None
    assert not tls.verify


def test_requests_are_signed_as_javas_with_what_pull_consumers_add_signed_too() -> None:
    config = ClientConfig(name_server="a:1", access_key="RocketMQ", secret_key=JAVAS_SECRET)
    sign = config.signer()
    assert sign is not None
    assert sign(34, {}, b"{}")["Signature"] == "pq0tPL2lAz7bhIfEGHu4hhut1Yw="
    stream = config.signer(is_stream=True)
    assert stream is not None
    signed = Credentials("RocketMQ", JAVAS_SECRET).signed_fields({"topic": "t", "ReqT": "0"})
    assert {"topic": "t", **stream(34, {"topic": "t"}, b"")} == signed
    assert sorted(stream(34, {"topic": "t"}, b"")) == ["AccessKey", "ReqT", "Signature"], "no field goes out twice"


def test_without_an_account_nothing_is_signed_and_pull_consumers_say_that_they_are() -> None:
    config = ClientConfig(name_server="a:1")
    assert config.signer() is None
    stream = config.signer(is_stream=True)
    assert stream is not None
    assert stream(11, {"topic": "t"}, b"") == {"ReqT": "0"}


def test_client_ids_are_built_as_javas() -> None:
    config = ClientConfig(name_server="a:1", client_ip="10.0.0.1", instance_name="i", unit_name="u")
    assert config.client_id() == "10.0.0.1@i@u"
    assert config.client_id(is_stream=True) == "10.0.0.1@i@u@STREAM"
    assert ClientConfig(client_ip="10.0.0.1", name_server="a:1", unit_name="  ").client_id() == "10.0.0.1@DEFAULT"


def test_the_default_instance_name_becomes_the_process_and_a_time_once() -> None:
    config = ClientConfig(name_server="a:1").with_pid_instance_name()
    assert re.fullmatch(rf"{os.getpid()}#[0-9]+", config.instance_name)
    assert config.with_pid_instance_name().instance_name == config.instance_name
    assert ClientConfig(name_server="a:1").with_pid_instance_name().instance_name != config.instance_name
    assert ClientConfig(name_server="a:1", instance_name="own").with_pid_instance_name().instance_name == "own"


def test_the_address_in_client_ids_is_one_of_this_machine() -> None:
    address = ClientConfig(name_server="a:1").client_id().partition("@")[0]
    assert re.fullmatch(r"[0-9.]+|[0-9a-f:]+", address)


def test_addresses_are_translated_where_that_is_asked_for() -> None:
    config = ClientConfig(name_server="a:1", translate_address={"10.0.0.1:10911": "localhost:1"}.__getitem__)
    assert config.translated("10.0.0.1:10911") == "localhost:1"
    assert ClientConfig(name_server="a:1").translated("x:1") == "x:1"


def test_a_configuration_goes_to_another_process() -> None:
    config = ClientConfig(name_server="a:1;b:2", access_key="a", secret_key=SECRET, tls=TlsOptions(verify=False))
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 - its own bytes
