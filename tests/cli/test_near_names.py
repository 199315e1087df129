"""A topic or a group that nobody has: commands end, and name those that it may be meant for."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rmqfast import Admin, EmbeddedCluster, Message, Producer
from rmqfast.cli.cluster_access import near_names

from .command_line import run


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster, Admin(name_server=cluster.name_server) as admin:
        for topic in ("orders", "orders-eu", "bills"):
            admin.create_topic(topic)
        yield cluster


def ended(cluster: EmbeddedCluster, *words: str) -> tuple[int, str]:
    """The exit code of a command, and the last line that it said."""
    result = run(*words, "-n", cluster.name_server)
    return result.exit_code, result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "words",
    [
        ("topic", "show", "ordrs"),
        ("topic", "delete", "ordrs", "--yes"),
        ("message", "show", "--topic", "ordrs", "--key", "k"),
        ("explain", "--topic", "ordrs", "--queue", "0", "--offset", "0"),
        ("group", "skip", "cashiers", "ordrs", "--yes"),
        ("produce", "ordrs", "x"),
        ("consume", "Ordrs", "--group", "readers", "--max", "1"),
    ],
)
def test_a_mistyped_topic_ends_the_command_with_near_ones(cluster: EmbeddedCluster, words: tuple[str, ...]) -> None:
    code, said = ended(cluster, *words)
    assert code == 1
    assert said.endswith("(did you mean orders or orders-eu?)")


def test_a_topic_that_is_like_none_names_the_command_that_lists_them(cluster: EmbeddedCluster) -> None:
    code, said = ended(cluster, "produce", "shipments", "x")
    expected = "error: no broker of this cluster has the topic shipments; --create makes it"
    assert (code, said) == (1, f"{expected} (`rmqfast topic list` lists the topics)")
    with Admin(name_server=cluster.name_server) as admin:
        assert "shipments" not in admin.topics.all()


def test_produce_makes_a_topic_when_it_is_told_to(cluster: EmbeddedCluster) -> None:
    for _ in range(2):
        result = run("produce", "made-by-produce", "x", "--create", "-o", "json", "-n", cluster.name_server)
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)[0]["status"] == "SEND_OK"


def test_consume_waits_for_a_topic_when_it_is_told_to(cluster: EmbeddedCluster) -> None:
    with Producer("shop", name_server=cluster.name_server) as producer:
        code, said = ended(cluster, "consume", "made-later", "--group", "waiters", "--max", "1")
        assert (code, "--wait waits for it" in said) == (1, True)
        producer.send(Message("made-later", b"x"))
    words = ("consume", "made-later", "--group", "waiters", "--from", "first", "--max", "1", "--wait", "-o", "json")
    result = run(*words, "-n", cluster.name_server)
    assert [row["topic"] for row in json.loads(result.stdout)] == ["made-later"]


def test_names_are_near_whatever_their_case_and_three_at_most() -> None:
    assert near_names("ORDER", ["order1", "order2", "order3", "order4", "x"]) == ["order4", "order3", "order2"]
    assert near_names("x", []) == []
