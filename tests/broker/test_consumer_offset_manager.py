"""Offsets of consumers: where a group begins, corrections, copies, the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rmqfast import WritableStore
from rmqfast.broker.metadata import Metadata
from rmqfast.broker.offsets.consumer_offset_manager import LONG_MAX, ConsumerOffsetManager
from rmqfast.store import GetLimits, LiveStore
from rmqfast.store.config import ConsumerOffsetTable

from .client_doubles import QueuesByHand, Tables

MEMORY = GetLimits(physical_memory=1000)


def _offsets(metadata: Metadata, tables: Tables | None = None, store: LiveStore | None = None) -> ConsumerOffsetManager:
    return ConsumerOffsetManager(metadata, (tables or Tables()).data_plane, store or QueuesByHand({}), limits=MEMORY)


@pytest.mark.parametrize(
    ("committed", "bounds", "log_end", "begins"),
    [
        (7, (0, 10), 0, 7),
        (0, (5, 10), 0, 0),
        (None, (0, 10), 400, 0),
        (None, (0, 10), 401, None),
        (None, (5, 10), 0, None),
        (None, (0, 0), 10_000, 0),
        (None, None, 10_000, 0),
        (-1, (0, 10), 0, 0),
        (-1, (5, 10), 0, None),
    ],
    ids=[
        "committed",
        "committed 0, removed since",
        "all in memory: 40 % of it",
        "the first is on the disk alone",
        "the first was removed",
        "empty queue",
        "no queue",
        "-1 is none, in memory",
        "-1 is none, removed",
    ],
)
def test_where_a_group_begins(
    metadata: Metadata, committed: int | None, bounds: tuple[int, int] | None, log_end: int, begins: int | None
) -> None:
    tables = Tables()
    if committed is not None:
        tables.commit_offset("g", "t", 0, committed)
    store = QueuesByHand({("t", 0): bounds} if bounds else {}, first_at=0, log_end=log_end)
    assert _offsets(metadata, tables, store).query("g", "t", 0) == begins


def test_a_new_group_begins_at_the_start_of_a_real_store(metadata: Metadata, offsets_store: WritableStore) -> None:
    live = offsets_store.live
    in_memory = ConsumerOffsetManager(metadata, Tables().data_plane, live, limits=GetLimits(physical_memory=1 << 30))
    on_disk = ConsumerOffsetManager(metadata, Tables().data_plane, live, limits=GetLimits(physical_memory=1))
    assert in_memory.query("new", "fx_plain", 0) == 0
    assert on_disk.query("new", "fx_plain", 0) is None


def test_offsets_go_to_the_data_plane_and_back_to_the_file(golden_store_copy: Callable[[str], Path]) -> None:
    path, tables = golden_store_copy("offsets-4.9.4"), Tables()
    before = ConsumerOffsetTable.load(path)
    metadata = Metadata(path)
    offsets = _offsets(metadata, tables)
    offsets.load()
    assert tables.offset("fx_collide", "fx_plain", 1) == before["fx_plain", "fx_collide"][1]
    assert len(tables.committed) == len(before) > 3
    offsets.commit("fx_collide", "fx_plain", 1, 12345)
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


def test_a_copy_takes_the_place_of_what_was_there(metadata: Metadata) -> None:
    tables = Tables()
    tables.committed = {"t@from": {0: 5, 1: 6}, "t@to": {0: 1, 7: 7}, "u@to": {0: 9}}
    offsets = _offsets(metadata, tables)
    offsets.clone("from", "to", "t")
    assert tables.committed == {"t@from": {0: 5, 1: 6}, "t@to": {0: 5, 1: 6}, "u@to": {0: 9}}
    offsets.clone("nobody", "to", "t")
    offsets.clone("from", "from", "t")
    assert tables.committed["t@to"] == {0: 5, 1: 6}
    assert tables.committed["t@from"] == {0: 5, 1: 6}


@pytest.mark.parametrize(
    ("left_out", "expected"),
    [
        ([], {0: 3, 1: 8}),
        ([""], {0: 3, 1: 8}),
        (["late"], {0: 5, 1: 8}),
        (["mine"], {0: 3, 1: LONG_MAX}),
        (["mine", "late"], {0: LONG_MAX, 1: LONG_MAX}),
    ],
)
def test_corrections(metadata: Metadata, left_out: list[str], expected: dict[int, int]) -> None:
    tables = Tables()
    tables.committed = {"t@mine": {0: 5, 1: 8}, "t@late": {0: 3, 1: 9}, "t@far": {0: 9, 1: 9}, "u@x": {0: 0}}
    before = tables.offsets()
    offsets = _offsets(metadata, tables)
    assert offsets.correction("t", "mine", left_out) == expected
    assert tables.offsets() == before, "4.9.4 deletes the offsets of groups that are left out"


def test_corrections_pass_over_offsets_of_what_was_removed(metadata: Metadata) -> None:
    tables = Tables()
    tables.committed = {"t@mine": {0: 5, 1: 1}, "t@late": {0: 3}}
    store = QueuesByHand({("t", 0): (4, 9), ("t", 1): (2, 9)})
    assert _offsets(metadata, tables, store).correction("t", "mine", []) == {0: 5}


def test_groups_of_a_topic_and_topics_of_a_group(metadata: Metadata) -> None:
    tables = Tables()
    tables.committed = {"t@g": {0: 1}, "t@h": {0: 1}, "u@g": {0: 1}}
    offsets = _offsets(metadata, tables)
    assert offsets.groups_of("t") == {"g", "h"}
    assert offsets.topics_of("g") == {"t", "u"}
    offsets.remove("g", "t")
    assert offsets.topics_of("g") == {"u"}
    offsets.remove("g")
    assert offsets.topics_of("g") == set()
