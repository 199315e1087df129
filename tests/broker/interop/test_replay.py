"""Requests of RocketMQ's clients, recorded on a real cluster, get the same answers from rmqfast's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from . import brokers_of_5
from .cluster import OurCluster
from .frames import JSON, Frame
from .moved_offsets import MovedOffsets
from .record_rows import record_rows
from .replay import LATE_TOPIC, PROPERTIES, PULLS, Replay, expected, recording, replay

# Offset ids: address, port, and the places 813 and 663 in the log.
IDS = ("7F00000100006342000000000000032D", "7F000001000063420000000000000297")


@pytest.mark.long
@pytest.mark.real
@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", ["4.9.4", "5.3.3"])
def test_every_answer_is_that_of_4_9_4(version: str, tmp_path: Path) -> None:
    with OurCluster(tmp_path, PROPERTIES) as cluster:
        differences = replay(version, cluster)
    assert differences == [], "\n".join(map(str, differences))


def test_what_clients_of_5_get_from_4_9_4_differs_as_listed_from_what_they_got_from_5(tmp_path: Path) -> None:
    comparison = Replay(recording("5.3.3"), OurCluster(tmp_path), expected("5.3.3"))
    found = {
        (comparison.rows[number]["server"], difference.code, difference.what)
        for number, kept in enumerate(comparison.expected)
        if kept is not None
        for difference in comparison.compare(number, comparison.recorded[number])
    }
    assert {one for one in found if one[2] != "version"} == set(brokers_of_5.ANSWERS)


def test_each_request_of_5_that_waits_for_an_answer_has_one_of_4_9_4() -> None:
    rows = recording("5.3.3")
    kept = expected("5.3.3")
    assert kept is not None
    left = {row["code"] for row, frame in zip(rows, kept, strict=True) if frame is None and not row["oneway"]}
    late = [row["requestHeader"]["extFields"]["topic"] for row in rows if row["code"] in (105, 300)].count(LATE_TOPIC)
    assert left == {105, 300, 307}
    assert late == sum(
        frame is None and row["code"] != 307 and not row["oneway"] for row, frame in zip(rows, kept, strict=True)
    )


def test_a_message_that_is_sent_back_is_named_by_its_place_here() -> None:
    moved = MovedOffsets()
    sent, again = (Frame(JSON, {"code": 0, "extFields": {"msgId": one, "queueOffset": "2"}}, b"") for one in IDS)
    moved.learn(sent, again)
    back = Frame(JSON, {"code": 36, "extFields": {"offset": "813", "group": "g"}}, b"")
    assert Frame.read(moved.request(back.written())).fields == {"offset": "663", "group": "g"}
    other = Frame(JSON, {"code": 36, "extFields": {"offset": "814"}}, b"").written()
    assert moved.request(other) == other


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
    assert list(comparison.compare(number, answer)) == []
    told = [difference.what for difference in comparison.compare(number, CHANGES[what](answer))]
    assert told == [what]


def test_messages_of_a_recorded_pull_are_taken_apart() -> None:
    rows = [row for row in recording("4.9.4") if row["step"] == "push" and row["code"] == 11]
    found = [message for row in rows for message in record_rows(Frame.read(bytes.fromhex(row["response"])).body)]
    assert {message["topic"] for message in found} == {"wire"}
    assert {message["properties"].get("TAGS") for message in found} == {"TagA", None}
    assert {"k0", "k1", "k2", "k3"} <= {message["properties"].get("KEYS") for message in found}
    assert all(message["stored"] == message["physicalOffset"] == "<masked>" for message in found)
