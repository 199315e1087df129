"""The official Java client of 4.9.4 with TLS, against a name server and a broker."""

from __future__ import annotations

import json

import pytest

from rmqfast import EmbeddedCluster
from tests.interop import rocketmq

from .certificates import Authority, KeyPair

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
COUNT = 20


def java(extra: dict[str, str], program: str, *arguments: str, timeout: float = 120) -> list[dict[str, object]]:
    """What a program of Java's client printed: a line of JSON for each message."""
    flags = " ".join(f"-D{key}={value}" for key, value in extra.items())
    printed = rocketmq.java("4.9.4", program, *arguments, extra=flags, seconds=timeout, check=False)
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def is_served(cluster: EmbeddedCluster, extra: dict[str, str]) -> bool:
    """Whether a producer's messages reach a push consumer; what is too large for a single TLS record among them."""
    topic = f"t{len(cluster.brokers[0].state.topics.wrapper()['topicConfigTable'])}"
    common = ("--namesrv", cluster.name_server, "--topic", topic)
    sent = java(extra, "Produce", *common, "--count", str(COUNT), "--size", "100000")
    if sum(line.get("sendStatus") == "SEND_OK" for line in sent) != COUNT:
        return False
    group = ("--group", f"g-{topic}", "--count", str(COUNT), "--idle-ms", "20000")
    seen = java(extra, "Consume", "--mode", "push", *common, *group)
    return {line["msgId"] for line in sent} == {line["msgId"] for line in seen}


def trusting(authority: Authority, client: KeyPair | None = None) -> dict[str, str]:
    """A client that verifies the server, and shows who it is."""
    own = {} if client is None else {"tls.client.certPath": client.certificate, "tls.client.keyPath": client.key}
    verified = {"tls.enable": "true", "tls.test.mode.enable": "false", "tls.client.authServer": "true"}
    return verified | {"tls.client.trustCertPath": str(authority.certificate)} | {k: str(v) for k, v in own.items()}


def given(authority: Authority) -> dict[str, str]:
    server = authority.server()
    return {
        "tls.server.certPath": str(server.certificate),
        "tls.server.keyPath": str(server.key),
        "tls.client.trustCertPath": str(authority.certificate),
    }


def test_javas_test_mode_and_plain_clients_are_served_by_a_cluster_that_is_told_nothing() -> None:
    with EmbeddedCluster() as cluster:
        assert is_served(cluster, {"tls.enable": "true"})
        assert is_served(cluster, {})


def test_a_permissive_cluster_with_a_certificate_serves_clients_that_verify_it_and_plain_ones(
    authority: Authority,
) -> None:
    with EmbeddedCluster(config=given(authority) | {"tls.server.mode": "permissive"}) as cluster:
        assert is_served(cluster, trusting(authority))
        assert is_served(cluster, {})


def test_an_enforcing_cluster_serves_clients_with_tls_alone(authority: Authority) -> None:
    with EmbeddedCluster(config=given(authority)) as cluster:
        assert is_served(cluster, trusting(authority))
        assert not is_served(cluster, {})


def test_a_client_that_does_not_trust_the_authority_is_not_served(authority: Authority, stranger: Authority) -> None:
    with EmbeddedCluster(config=given(authority)) as cluster:
        assert not is_served(cluster, trusting(stranger))


def test_both_sides_show_who_they_are(authority: Authority, stranger: Authority) -> None:
    client = authority.client()
    required = {
        "tls.server.need.client.auth": "require",
        "tls.server.authClient": "true",
        "tls.server.trustCertPath": str(authority.certificate),
        "tls.client.certPath": str(client.certificate),
        "tls.client.keyPath": str(client.key),
    }
    with EmbeddedCluster(config=given(authority) | required) as cluster:
        assert is_served(cluster, trusting(authority, client))
        assert not is_served(cluster, trusting(authority))
        assert not is_served(cluster, trusting(authority, stranger.client()))
