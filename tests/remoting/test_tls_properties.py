"""TLS as RocketMQ's properties say it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from rmqfast.broker import BrokerConfig
from rmqfast.errors import ArgumentError
from rmqfast.nameserver import NamesrvConfig
from rmqfast.remoting import ClientAuth, TlsMode, TlsOptions
from rmqfast.remoting.tls import client_tls, server_tls

PAIR = {"tls.server.certPath": "a.pem", "tls.server.keyPath": "a.key"}


@pytest.mark.parametrize(
    ("values", "mode", "certificate"),
    [
        ({}, TlsMode.PERMISSIVE, None),
        ({"tls.server.mode": "enforcing"}, TlsMode.ENFORCING, None),
        ({"tls.server.mode": "disabled", **PAIR}, TlsMode.DISABLED, None),
        (PAIR, TlsMode.ENFORCING, Path("a.pem")),
        ({"tls.server.mode": "permissive", **PAIR}, TlsMode.PERMISSIVE, Path("a.pem")),
        ({"tls.test.mode.enable": "false"}, TlsMode.DISABLED, None),
        ({"tls.test.mode.enable": "false", **PAIR}, TlsMode.ENFORCING, Path("a.pem")),
        ({"tls.test.mode.enable": "TRUE", "tls.server.certPath": " "}, TlsMode.PERMISSIVE, None),
    ],
)
def test_what_a_server_is_told_says_its_mode(values: dict[str, str], mode: TlsMode, certificate: Path | None) -> None:
    tls = server_tls(values)
    assert (tls.mode, tls.certificate) == (mode, certificate)


def test_clients_are_verified_unless_a_property_says_otherwise() -> None:
    asked = {**PAIR, "tls.server.need.client.auth": "require", "tls.server.trustCertPath": "ca.pem"}
    assert (server_tls(asked).verify, server_tls(asked).client_auth) == (True, ClientAuth.REQUIRE)
    assert not server_tls({**asked, "tls.server.authClient": "false"}).verify
    with pytest.raises(ArgumentError, match="trust: expected a file of authorities"):
        server_tls({**asked, "tls.server.trustCertPath": ""})


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"tls.server.mode": "strict"}, "mode: expected disabled or permissive or enforcing, got 'strict'"),
        (
            {**PAIR, "tls.server.need.client.auth": "yes"},
            "client_auth: expected none or optional or require, got 'yes'",
        ),
        ({**PAIR, "tls.server.authClient": "yes"}, "tls.server.authClient: expected true or false, got 'yes'"),
        ({**PAIR, "tls.server.keyPath": ""}, "expected a certificate and its key, got a.pem and None"),
        ({**PAIR, "tls.server.keyPassword": "x"}, "tls.server.keyPassword: expected none"),
        ({**PAIR, "tls.test.mode.enable": "true"}, "tls.test.mode.enable=true: expected no tls.server.certPath"),
        ({"tls.test.mode.enable": "false", "tls.server.mode": "enforcing"}, "tls.server.certPath: expected a file"),
        ({"tls.config.file": "/not/there"}, "tls.config.file: expected a file, got /not/there"),
    ],
)
def test_what_contradicts_itself_is_refused(values: dict[str, str], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        server_tls(values)


def test_connections_to_others_have_tls_where_that_is_said_or_the_server_enforces_it() -> None:
    trust = {"tls.client.trustCertPath": "ca.pem"}
    assert client_tls(trust) is None
    assert client_tls({"tls.enable": "true", **trust}) == TlsOptions(trust="ca.pem")
    assert client_tls(trust, use_tls=True) == TlsOptions(trust="ca.pem")
    assert client_tls({**PAIR, **trust}) == TlsOptions(trust="ca.pem")
    assert client_tls({**PAIR, **trust, "tls.enable": "false"}) is None
    own = {"tls.client.certPath": "c.pem", "tls.client.keyPath": "c.key"}
    tls = client_tls({"tls.enable": "true", **trust, **own})
    assert tls is not None
    assert (tls.certificate, tls.key, tls.verify) == (Path("c.pem"), Path("c.key"), True)


def test_whoever_verifies_nobody_says_so() -> None:
    with pytest.raises(ArgumentError, match=r"tls\.client\.trustCertPath: expected a file of authorities, or"):
        client_tls({"tls.enable": "true"})
    for key, value in (("tls.client.authServer", "false"), ("tls.test.mode.enable", "true")):
        tls = client_tls({"tls.enable": "true", key: value})
        assert tls is not None
        assert not tls.verify


def test_a_file_of_its_own_wins(tmp_path: Path) -> None:
    file = tmp_path / "tls.properties"
    file.write_text("tls.server.certPath=b.pem\ntls.server.mode = permissive\nelse=1\n")
    tls = server_tls({**PAIR, "tls.config.file": str(file)})
    assert (tls.mode, tls.certificate, tls.key) == (TlsMode.PERMISSIVE, Path("b.pem"), Path("a.key"))


def test_the_files_of_both_servers_may_hold_them(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    text = "".join(f"{key}={value}\n" for key, value in PAIR.items())
    file = tmp_path / "namesrv.conf"
    file.write_text(text + "clusterTest=true\n")
    with caplog.at_level(logging.WARNING):
        broker, namesrv = BrokerConfig.parse(text), NamesrvConfig.from_file(file)
    assert caplog.text == ""
    assert server_tls(broker) == server_tls(namesrv.tls) == TlsOptions(certificate="a.pem", key="a.key")
    namesrv.update({"clusterTest": "false", "tls.server.mode": "disabled"})
    assert namesrv.tls == PAIR, "a request does not change them"
    assert NamesrvConfig.from_file(file).tls == PAIR, "what is written has them still"
    assert not any(name.startswith("tls") for name in NamesrvConfig().properties())
