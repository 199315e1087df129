"""Other clients and suites behave on rmqfast's broker as on RocketMQ's, or the difference is explained."""

from __future__ import annotations

import json

import pytest

from tests.interop.compatibility import CLUSTERS, OURS, REAL, examine
from tests.interop.outsiders import OUTSIDERS, Outsider


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("outsider", OUTSIDERS, ids=[one.name for one in OUTSIDERS])
def test_nothing_on_our_broker_is_different_without_a_reason(outsider: Outsider) -> None:
    (found,) = examine([outsider], CLUSTERS)
    assert found.missing == "", f"{outsider.name} cannot be installed: {found.missing}"
    assert set(found.rows) == {OURS, *REAL}
    assert found.scenarios
    strange = [name for one in found.differences() if one.cluster == OURS and one.why is None for name in one.scenarios]
    rows = {name: {"told": found.told(OURS, name), "expected": found.expected(name)} for name in strange}
    assert not strange, json.dumps(rows, indent=1)
