"""`start_timeout`: a client that starts has had an answer of a name server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rmqfast
from rmqfast import EmbeddedCluster
from rmqfast.client.instance import ClientConfig
from rmqfast.errors import ArgumentError, ClientError
from tests.remoting.held_port import held_port

NOBODY = "127.0.0.1:1"
KINDS: list[Callable[[ClientConfig], Any]] = [
    lambda config: rmqfast.Producer("g", config=config),
    lambda config: rmqfast.LitePullConsumer("g", config=config),
    lambda config: rmqfast.PullConsumer("g", config=config),
    lambda config: rmqfast.Admin(config=config),
    lambda config: heard(rmqfast.PushConsumer("g", config=config)),
]


def heard(consumer: rmqfast.PushConsumer) -> rmqfast.PushConsumer:
    consumer.register_message_listener(lambda _messages, _context: None)
    return consumer


@pytest.mark.parametrize("make", KINDS)
def test_a_client_that_is_to_have_an_answer_does_not_start_without(make: Callable[[ClientConfig], Any]) -> None:
    with pytest.raises(ClientError, match=r"connect to <127\.0\.0\.1:1> failed") as caught:
        make(ClientConfig(name_server=NOBODY, start_timeout=0.2)).start()
    assert caught.value.response_code == 10001


@pytest.mark.parametrize("make", KINDS)
def test_it_starts_where_one_of_the_name_servers_answers(make: Callable[[ClientConfig], Any]) -> None:
    with EmbeddedCluster() as cluster:
        config = ClientConfig(name_server=f"{NOBODY};{cluster.name_server}", start_timeout=30)
        with make(config):
            pass


def test_a_producer_that_did_not_start_starts_later() -> None:
    with held_port() as address:
        producer = rmqfast.Producer("g", config=ClientConfig(name_server=address, start_timeout=0.2))
        with pytest.raises(ClientError):
            producer.start()
        with EmbeddedCluster(name_server_port=int(address.rpartition(":")[2])), producer:
            assert producer.client_id


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf")])
def test_a_timeout_that_is_none_is_refused(timeout: float) -> None:
    with pytest.raises(ArgumentError, match="start_timeout: expected seconds above 0"):
        ClientConfig(name_server=NOBODY, start_timeout=timeout)


@pytest.mark.parametrize(
    "address", ["http://a:9876", "https://a:9876", "a", "a b:9876", "a:9876 b:9876", "a:", ":1", "me@a:9876", "a:1,b:1"]
)
@pytest.mark.parametrize("make", [rmqfast.Producer, rmqfast.LitePullConsumer, rmqfast.PushConsumer])
def test_an_address_that_is_none_is_refused_as_the_client_is_made(make: Callable[..., Any], address: str) -> None:
    with pytest.raises(ArgumentError, match="name_server: expected host:port"):
        make("g", name_server=address)
