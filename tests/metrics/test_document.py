"""The page about metrics names all of them, and the dashboard and the alerts ask for none that is not there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from rmqfast import Admin, ClientConfig, EmbeddedCluster
from rmqfast.broker import BrokerConfig
from rmqfast.broker.metrics import metrics_of
from rmqfast.client.metrics import client_metrics, serve_metrics
from rmqfast.exporter import Exporter
from rmqfast.exporter.cluster_metrics import Cluster
from rmqfast.metrics import Kind
from rmqfast.nameserver.config import NamesrvConfig
from rmqfast.nameserver.metrics import metrics_of as metrics_of_name_server
from rmqfast.nameserver.route_info import RouteInfoManager
from tests.metrics.reading import scrape

DOCS = Path(__file__).parents[2] / "docs"
NAME = re.compile(r"\b(?:rocketmq|rmqfast)_[a-z0-9_]+\b")
#: Names that the page says are missing, or that stand for many.
SPOKEN_OF = {
    "rocketmq_group_dlqdiff",
    "rocketmq_group_consume_tps",
    "rocketmq_group_consume_total_offset",
    "rocketmq_client_",
}


@pytest.fixture(scope="module")
def own_names() -> set[str]:
    """The names that a broker, a name server and clients tell."""
    with EmbeddedCluster() as cluster:
        families = [*metrics_of(cluster.brokers[0].state), *metrics_of_name_server(RouteInfoManager(), 0)]
    families += client_metrics()
    return {family.name for family in families}


@pytest.fixture(scope="module")
def exporter_names() -> set[str]:
    with EmbeddedCluster() as cluster, Admin(name_server=cluster.name_server) as admin:
        families = Cluster(snapshot=admin.snapshot()).families(0)
        with Exporter(ClientConfig(name_server=cluster.name_server), port=0) as exporter:
            own = {name for name in scrape(exporter.address) if name.startswith("rmqfast_exporter_")}
    assert not [family for family in families if family.kind is Kind.HISTOGRAM]
    return {family.name for family in families} | own | {"rmqfast_exporter_round_seconds"}


def test_the_page_names_each_metric_and_no_other(own_names: set[str], exporter_names: set[str]) -> None:
    said = set(NAME.findall((DOCS / "metrics.md").read_text(encoding="utf-8")))
    # Those of RocketMQ's exporter are not listed again.
    own_of_exporter = {name for name in exporter_names if name.startswith("rmqfast_")}
    assert (own_names | own_of_exporter) - said == set()
    assert said - own_names - exporter_names - SPOKEN_OF == set()


def test_the_code_of_the_page_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "metrics.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - of the page
    assert names["serve_metrics"] is serve_metrics
    try:
        assert isinstance(scrape(names["server"].address), dict)
    finally:
        names["server"].close()


def test_the_lines_of_the_page_are_configuration() -> None:
    (lines,) = re.findall(r"```properties\n(.*?)```", (DOCS / "metrics.md").read_text(encoding="utf-8"), re.DOTALL)
    assert BrokerConfig.parse(lines).text("metricsPort") == str(NamesrvConfig.from_text(lines).metrics_port) == "5557"


def expressions() -> Iterator[Any]:
    rules = yaml.safe_load((DOCS / "monitoring/rmqfast-alerts.yml").read_text(encoding="utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield pytest.param(rule["expr"], id=rule["alert"])
    dashboard = json.loads((DOCS / "monitoring/rmqfast-dashboard.json").read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield pytest.param(target["expr"].replace("$cluster", ".*"), id=panel["title"])


@pytest.mark.parametrize("expression", list(expressions()))
def test_each_expression_is_one_and_asks_for_what_is_there(
    expression: str, own_names: set[str], exporter_names: set[str]
) -> None:
    promql_parser.parse(expression)
    asked = {name.removesuffix("_bucket") for name in NAME.findall(expression)}
    assert asked
    assert asked - own_names - exporter_names == set()


def test_each_alert_says_what_is_wrong() -> None:
    rules = yaml.safe_load((DOCS / "monitoring/rmqfast-alerts.yml").read_text(encoding="utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["summary"]
            assert rule["labels"]["severity"] in {"critical", "warning"}
