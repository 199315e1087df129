"""The pages for those who come from elsewhere name what there is, and their programs run."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator

import pytest

from rmqfast import Admin, EmbeddedCluster
from rmqfast._native import SparkOptions
from tests.examples.documents import ROOT, check_code

PAGES = ("java.md", "rocketmq-client-python.md", "kafka.md")
MODULES = ("rmqfast", "rmqfast.client.producer", "rmqfast.client.push", "rmqfast.client.consumer", "rmqfast.remoting")


def names_of(page: str) -> Iterator[str]:
    """Our names in the tables: classes, their members, and methods of `admin`."""
    text = (ROOT / "docs/coming-from" / page).read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("|"):
            ours = " ".join(line.split(" | ")[1:]) if page != "kafka.md" else line
            yield from re.findall(r"`((?:[A-Z][a-z]+[A-Z]?\w*|admin)(?:\.\w+)*)`", ours)


@pytest.mark.parametrize("page", PAGES)
def test_each_name_in_the_tables_is_there(page: str) -> None:
    names = sorted(set(names_of(page)))
    assert names
    admin = Admin(name_server="127.0.0.1:1")  # it is not started
    assert [name for name in names if not is_there(name, admin)] == []


def is_there(name: str, admin: Admin) -> bool:
    """Whether a public module has the name, with all of its parts."""
    first, *rest = name.split(".")
    modules = [importlib.import_module(module) for module in MODULES]
    found: object = next((getattr(module, first) for module in modules if hasattr(module, first)), None)
    found = admin if first == "admin" else found
    for part in rest:
        found = getattr(found, part, None)
    return found is not None


def test_the_commands_of_the_table_are_there() -> None:
    text = (ROOT / "docs/coming-from/kafka.md").read_text(encoding="utf-8")
    commands = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    named = re.findall(r"`(rmqfast [a-z]+(?: [a-z]+)?)", text)
    assert len(named) > 5
    assert [name for name in named if not re.search(rf"^###? {name}$", commands, re.MULTILINE)] == []


def test_the_options_that_spark_shares_with_kafka_are_there() -> None:
    text = (ROOT / "docs/coming-from/kafka.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if "failOnDataLoss" in line)
    assert set(re.findall(r"`(\w+)`", row)) <= set(SparkOptions.names("topic stream"))


@pytest.mark.long
def test_the_program_for_users_of_kafka_runs_and_prints_what_stands_below_it() -> None:
    check_code("coming-from/kafka.md")


@pytest.mark.long
@pytest.mark.parametrize("page", ["java.md", "rocketmq-client-python.md"])
def test_the_program_for_users_of_another_client_runs(page: str) -> None:
    with EmbeddedCluster() as cluster:
        names = check_code(f"coming-from/{page}", readers={"10.0.0.1:9876": cluster.name_server})
    assert names["result"].queue_offset == 0
