"""Consumer groups: those that are made by themselves, and those that are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast.store.config import SubscriptionGroupConfig, SubscriptionGroupTable
from tests.broker.control_plane import ControlPlane


def test_a_group_is_made_when_it_is_asked_for(plane: ControlPlane) -> None:
    group = plane.groups.find("orders")
    assert group == SubscriptionGroupConfig(group_name="orders")
    plane.metadata.flush()
    assert plane.tables.groups["orders"] == group == plane.metadata.load(SubscriptionGroupTable)["orders"]
    assert plane.groups.data_version.counter == 1
    assert plane.groups.find("orders") is group
    assert plane.groups.data_version.counter == 1


def test_only_groups_of_the_system_are_made_where_none_is_to_be_made(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "store", {"autoCreateSubscriptionGroup": "false"})
    assert plane.groups.find("orders") is None
    assert plane.groups.find("CID_RMQ_SYS_TRANS") == SubscriptionGroupConfig(group_name="CID_RMQ_SYS_TRANS")
    assert plane.groups.find("TOOLS_CONSUMER") is not None
    plane.close()


@pytest.mark.parametrize("name", ["", "../x", "a b", "a@b", "grüppe", "g" * 256])
def test_a_name_that_no_group_may_have_makes_none(still: ControlPlane, name: str) -> None:
    assert still.groups.find(name) is None
    assert name not in still.tables.groups


def test_a_group_that_may_not_consume_keeps_its_other_values(plane: ControlPlane) -> None:
    plane.groups.update(SubscriptionGroupConfig(group_name="g", retry_max_times=3))
    plane.groups.disable_consume("g")
    plane.groups.disable_consume("nobody")
    expected = SubscriptionGroupConfig(group_name="g", retry_max_times=3, consume_enable=False)
    assert plane.groups.get("g") == expected == plane.tables.groups["g"]
    assert "nobody" not in plane.tables.groups


def test_a_group_that_is_deleted_is_gone_after_a_restart(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path / "store")
    plane.groups.find("a")
    plane.groups.find("b")
    plane.groups.delete("a")
    plane.groups.delete("nobody")
    assert plane.groups.data_version.counter == 3
    plane.close()
    again = ControlPlane(tmp_path / "store")
    assert "a" not in again.tables.groups
    assert "b" in again.tables.groups
    assert again.groups.data_version.counter == 3
    again.close()
