"""RocketMQ's own clients find on rmqfast's broker what they find on RocketMQ's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from . import masks, scenarios
from .cluster import SCENARIO, OurCluster
from .goldens import golden

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]
CLIENTS = ("4.9.4", "5.3.3")
REAL = pytest.mark.real
NAMES = [
    pytest.param(client, name, id=f"{client} {name}", marks=REAL if client == "4.9.4" else ())
    for client in CLIENTS
    for name in golden(f"scenarios-{client}")
]


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, scenarios.Rows]:
    """The rows of all scenarios, by version of the clients that tests ask for; each has a cluster of its own."""
    specs = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    clients = [client for client in CLIENTS if any(client == params.get("client") for params in specs)]

    def play(client: str) -> scenarios.Rows:
        with OurCluster(tmp_path_factory.mktemp(client), SCENARIO) as cluster:
            return scenarios.play(cluster, client, list(golden(f"scenarios-{client}")))

    # most of a scenario is waiting: both at once take as long as one
    with ThreadPoolExecutor() as pool:
        return dict(zip(clients, pool.map(play, clients), strict=True))


@pytest.mark.parametrize(("client", "name"), NAMES)
def test_a_scenario_gives_the_rows_that_it_gives_on_rocketmq(
    played: dict[str, scenarios.Rows], client: str, name: str
) -> None:
    expected: list[Any] = golden(f"scenarios-{client}")[name]
    got = played[client][name]
    if client != CLIENTS[0]:
        got, expected = masks.between_versions(got), masks.between_versions(expected)
    assert got == expected
