"""Requests about offsets of consumers, and their file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rmqfast.broker.metadata import Metadata
from rmqfast.broker.offsets.consumer_offset_manager import LONG_MAX, ConsumerOffsetManager
from rmqfast.remoting import Response
from rmqfast.remoting.fastjson import decode
from rmqfast.store.config import ConsumerOffsetTable, TopicConfig

from .client_control import Control
from .client_doubles import Line, QueuesByHand, Tables, client, consumer, request, subscription


@pytest.fixture
def control(tmp_path: Path) -> Control:
    control = Control(tmp_path)
    control.tables.committed = {"t@g": {0: 7, 1: 8}, "u@g": {0: 3}}
    control.topics |= {name: TopicConfig(topic_name=name) for name in ("t", "u")}
    return control


def test_all_offsets_have_whole_numbers_as_keys(control: Control) -> None:
    assert control.answer(request(43)).body == b'{"offsetTable":{"t@g":{0:7,1:8},"u@g":{0:3}}}'
    control.tables.committed.clear()
    assert control.answer(request(43)).body == b'{"offsetTable":{}}'


@pytest.mark.parametrize(
    ("left_out", "expected"),
    [
        ({}, {0: 3, 1: 8}),
        ({"filterGroups": ""}, {0: 3, 1: 8}),
        ({"filterGroups": "late,other"}, {0: 5, 1: 8}),
        ({"filterGroups": "mine"}, {0: 3, 1: LONG_MAX}),
        ({"filterGroups": "mine,late"}, {0: LONG_MAX, 1: LONG_MAX}),
    ],
)
def test_corrections(control: Control, left_out: dict[str, Any], expected: dict[int, int]) -> None:
    offsets = {"t@mine": {0: 5, 1: 8}, "t@late": {0: 3, 1: 9}, "t@far": {0: 9, 1: 9}, "u@x": {0: 0}}
    control.tables.committed = {key: dict(queues) for key, queues in offsets.items()}
    answer = control.answer(request(308, topic="t", compareGroup="mine", **left_out))
    assert decode(answer.body) == {"correctionOffsets": expected}
    assert control.tables.committed == offsets, "4.9.4 deletes the offsets of groups that are left out"


def test_corrections_pass_over_offsets_of_what_was_removed(tmp_path: Path) -> None:
    control = Control(tmp_path, QueuesByHand({("t", 0): (4, 9), ("t", 1): (2, 9)}))
    control.tables.committed = {"t@mine": {0: 5, 1: 1}, "t@late": {0: 3}}
    answer = control.answer(request(308, topic="t", compareGroup="mine"))
    assert answer.body == b'{"correctionOffsets":{0:5}}'


def test_one_topic_or_all_are_copied(control: Control) -> None:
    assert control.answer(request(314, srcGroup="g", destGroup="one", topic="t", offline=True)) == Response()
    assert control.tables.committed["t@one"] == {0: 7, 1: 8}
    assert "u@one" not in control.tables.committed
    control.answer(request(314, srcGroup="g", destGroup="all", offline=False))
    assert (control.tables.committed["t@all"], control.tables.committed["u@all"]) == ({0: 7, 1: 8}, {0: 3})


def test_a_copy_takes_the_place_of_what_was_there(control: Control) -> None:
    control.tables.committed["t@to"] = {0: 1, 7: 7}
    for source, target in (("g", "to"), ("nobody", "to"), ("g", "g")):
        control.answer(request(314, srcGroup=source, destGroup=target, topic="t", offline=True))
        assert control.tables.committed["t@to"] == control.tables.committed["t@g"] == {0: 7, 1: 8}


def test_a_topic_that_is_not_there_is_not_copied(control: Control) -> None:
    del control.topics["u"]
    control.answer(request(314, srcGroup="g", destGroup="all"))
    assert "u@all" not in control.tables.committed


def test_what_an_online_group_does_not_want_is_copied_only_when_it_may_be_offline(control: Control) -> None:
    control.consumers.register(client(Line()), consumer("g", subscription("t")))
    control.answer(request(314, srcGroup="g", destGroup="online", offline=False))
    assert {key for key in control.tables.committed if key.endswith("@online")} == {"t@online"}
    control.answer(request(314, srcGroup="g", destGroup="offline", offline=True))
    assert {key for key in control.tables.committed if key.endswith("@offline")} == {"t@offline", "u@offline"}


def test_offsets_are_not_copied_to_a_group_that_no_file_can_name(control: Control) -> None:
    answer = control.answer(request(314, srcGroup="g", destGroup="a@b", offline=True))
    assert answer.code == 1
    assert "t@a@b" not in control.tables.committed


def _offsets(metadata: Metadata, tables: Tables) -> ConsumerOffsetManager:
    return ConsumerOffsetManager(metadata, tables.data_plane, QueuesByHand({}))


def test_offsets_go_to_the_data_plane_and_back_to_the_file(golden_store_copy: Callable[[str], Path]) -> None:
    path, tables = golden_store_copy("offsets-4.9.4"), Tables()
    before = ConsumerOffsetTable.load(path)
    metadata = Metadata(path)
    offsets = _offsets(metadata, tables)
    offsets.load()
    assert tables.offset("fx_collide", "fx_plain", 1) == before["fx_plain", "fx_collide"][1]
    assert len(tables.committed) == len(before) > 3
    tables.commit_offset("fx_collide", "fx_plain", 1, 12345)
    offsets.persist()
    metadata.close()
    after = ConsumerOffsetTable.load(path)
    assert after["fx_plain", "fx_collide"][1] == 12345
    assert {key: dict(queues) for key, queues in after.items() if key != ("fx_plain", "fx_collide")} == {
        key: dict(queues) for key, queues in before.items() if key != ("fx_plain", "fx_collide")
    }


def test_the_file_is_written_the_first_time_and_when_something_changed(metadata: Metadata) -> None:
    tables = Tables()
    offsets = _offsets(metadata, tables)
    offsets.load()
    path = metadata.root / "config" / "consumerOffset.json"
    for committed, written in ((None, {}), (None, None), (1, {"t@g": {"0": 1}}), (0, {"t@g": {"0": 0}}), (None, None)):
        path.unlink(missing_ok=True)
        if committed is not None:
            tables.commit_offset("g", "t", 0, committed)
        offsets.persist()
        metadata.write_files()
        found = json.loads(path.read_text().replace("{0:", '{"0":'))["offsetTable"] if path.exists() else None
        assert found == written


def test_keys_that_name_no_group_stay_in_the_file(tmp_path: Path) -> None:
    table = ConsumerOffsetTable()
    table.take({"offsetTable": {"oddity": {"0": 3}, "t@g": {"0": 1}}})
    table.save(tmp_path)
    tables, metadata = Tables(), Metadata(tmp_path)
    offsets = _offsets(metadata, tables)
    offsets.load()
    assert tables.offsets() == {"t@g": {0: 1}}
    tables.commit_offset("g", "t", 0, 2)
    offsets.persist()
    metadata.close()
    assert ConsumerOffsetTable.load(tmp_path).to_json()["offsetTable"] == {"oddity": {0: 3}, "t@g": {0: 2}}
