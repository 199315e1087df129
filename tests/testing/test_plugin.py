"""The plugin of pytest, as pytest itself uses it."""

from __future__ import annotations

import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.examples.documents import blocks_of

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
    print("store", rmqfast_cluster.brokers[0].state.root)
    assert 0
"""
#: What the reader has already.
SERVICE = """
from rmqfast import LitePullConsumer, Message, Producer
from rmqfast.client.consumer import ConsumeFromWhere
from rmqfast.client.lite_pull import LitePullOptions

class OrderService:
    def __init__(self, name_server):
        self.name_server = name_server

    def pay(self, number):
        with Producer("orders", name_server=self.name_server) as producer:
            producer.send(Message("orders", b"%d" % number))

    def received(self):
        options = LitePullOptions(consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
        with LitePullConsumer("cashiers", name_server=self.name_server, options=options) as consumer:
            consumer.subscribe("orders")
            while not (messages := consumer.poll(timeout=10)):
                pass
            return [int(message.body) for message in messages]
"""
OF_SETTINGS = """
def test_the_broker_has_them(rmqfast_cluster):
    config = rmqfast_cluster.brokers[0].config
    assert [config["messageDelayLevel"], config["autoCreateTopicEnable"]] == ["1s 2s", "false"]
"""
OF_BROKERS = """
def test_there_are_two(two_brokers):
    assert len(two_brokers.brokers) == 2
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


def test_the_blocks_of_the_page_run(pytester: pytest.Pytester) -> None:
    sent, settings, brokers = (block.code for block in blocks_of("testing.md") if block.language == "python")
    pytester.makepyfile(
        test_orders=f"{SERVICE}\n{sent}",
        test_settings=f"import pytest\n\n{settings}\n{OF_SETTINGS}",
        test_brokers=f"import pytest\nfrom rmqfast import EmbeddedCluster\n\n{brokers}\n{OF_BROKERS}",
    )
    pytester.runpytest_inprocess(*PLUGIN).assert_outcomes(passed=3)
