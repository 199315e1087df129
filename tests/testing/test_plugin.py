"""The plugin of pytest, as pytest itself uses it."""

from __future__ import annotations

import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from tests.embedded.client import address_of, pull, send

@pytest.fixture
def rmqfast_broker_config():
    return {"brokerName": "mine"}

@pytest.mark.parametrize("turn", [1, 2])
def test_orders(rmqfast_cluster, turn):
    address = address_of(rmqfast_cluster)
    assert rmqfast_cluster.brokers[0].config["brokerName"] == "mine"
    assert pull(address, "orders").code == 17
    assert send(address, "orders", b"paid").code == 0
    assert b"paid" in pull(address, "orders").body

def test_that_fails(rmqfast_cluster):
    print("store", rmqfast_cluster.brokers[0].tables.root)
    assert 0
"""
#: Where the package is not installed, as in its own checkout, nobody tells pytest of the plugin.
PLUGIN = [] if entry_points(group="pytest11", name="rmqfast") else ["-p", "rmqfast.testing.plugin"]


def test_each_test_has_a_cluster_of_its_own_that_goes_with_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_inprocess(*PLUGIN, "-s")
    result.assert_outcomes(passed=2, failed=1)
    store = next(line.split()[1] for line in result.outlines if "store /" in line or line.startswith("store "))
    assert not Path(store).exists()


def test_the_fixtures_are_listed_with_what_they_are_for(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess(*PLUGIN, "--fixtures")
    result.stdout.fnmatch_lines(["rmqfast_broker_config*", "rmqfast_cluster*", "*A name server and a broker*"])


def test_the_wheel_tells_pytest_of_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"rmqfast": "rmqfast.testing.plugin"}
