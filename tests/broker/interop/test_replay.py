"""Requests of RocketMQ's clients, recorded on a real cluster, get the same answers from rmqfast's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from .cluster import OurCluster
from .frames import Frame
from .record_rows import record_rows
from .replay import PROPERTIES, PULLS, Replay, recording, replay


@pytest.mark.long
@pytest.mark.timeout(300)
def test_every_answer_is_as_recorded(tmp_path: Path) -> None:
    with OurCluster(tmp_path, PROPERTIES) as cluster:
        differences = replay("4.9.4", cluster)
    assert differences == [], "\n".join(map(str, differences))


CHANGES: dict[str, Callable[[Frame], Frame]] = {
    "code": lambda frame: replace(frame, header=frame.header | {"code": 1}),
    "remark": lambda frame: replace(frame, header=frame.header | {"remark": "otherwise"}),
    "version": lambda frame: replace(frame, header=frame.header | {"version": 400}),
    "serialization": lambda frame: replace(frame, serialization="ROCKETMQ"),
    "fields": lambda frame: replace(frame, header=frame.header | {"extFields": {}}),
    "body": lambda frame: replace(frame, body=frame.body[:-1] + b"\x00"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_the_masks_do_not_hide_a_change_of(what: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    rows = recording("4.9.4")
    pulls = (n for n, row in enumerate(rows) if row["code"] in PULLS and row.get("responseBodyLen"))
    number = next(pulls)
    answer = Frame.read(bytes.fromhex(rows[number]["response"]))
    comparison = Replay(rows, OurCluster(tmp_path_factory.mktemp("none")))
    assert list(comparison._compare(number, answer, answer)) == []
    told = [difference.what for difference in comparison._compare(number, answer, CHANGES[what](answer))]
    assert told == [what]


def test_messages_of_a_recorded_pull_are_taken_apart() -> None:
    rows = [row for row in recording("4.9.4") if row["step"] == "push" and row["code"] == 11]
    found = [message for row in rows for message in record_rows(Frame.read(bytes.fromhex(row["response"])).body)]
    assert {message["topic"] for message in found} == {"wire"}
    assert {message["properties"].get("TAGS") for message in found} == {"TagA", None}
    assert {"k0", "k1", "k2", "k3"} <= {message["properties"].get("KEYS") for message in found}
    assert all(message["stored"] == message["physicalOffset"] == "<masked>" for message in found)
