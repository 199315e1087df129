"""mqadmin prints of rmqfast's cluster what it prints of RocketMQ's."""

from __future__ import annotations

import pytest

from . import masks
from .admin_commands import SEQUENCE
from .cluster import OurCluster
from .goldens import golden
from .mqadmin import ask_all

pytestmark = [pytest.mark.long, pytest.mark.real, pytest.mark.timeout(400)]
COMMANDS = [line for line in SEQUENCE.strip().splitlines() if not line.startswith("!")]


@pytest.fixture(scope="module")
def printed(cluster: OurCluster) -> list[tuple[str, str]]:
    return list(ask_all(cluster))


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=lambda number: f"{number} {COMMANDS[number]}")
def test_a_command_prints_what_it_prints_of_rocketmq(printed: list[tuple[str, str]], number: int) -> None:
    expected = [masks.comparable(line, text) for line, text in golden("mqadmin-4.9.4")]
    assert masks.comparable(*printed[number]) == expected[number]


def test_what_a_command_leaves_behind_lies_beside_the_store(
    printed: list[tuple[str, str]], cluster: OurCluster
) -> None:
    assert [path for path in cluster.directory.iterdir() if path.name.isdigit()] != []
