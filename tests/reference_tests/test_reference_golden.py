"""The reference reader reads what RocketMQ's own classes read, from every golden store."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import golden_stores
from tests.golden_stores import NAMES, PathOf
from tests.reference import config_json
from tests.reference.get_message import Status
from tests.reference.record import Blank
from tests.reference.row import COLUMNS
from tests.reference.store import Store

DAMAGED = "damaged-4.9.4"
WHOLE = [name for name in NAMES if name != DAMAGED]


@pytest.fixture(scope="module")
def stores() -> dict[str, Store]:
    return {}


@pytest.fixture
def open_golden(stores: dict[str, Store], golden_store: PathOf) -> Callable[[str], Store]:
    def of(name: str) -> Store:
        if name not in stores:
            stores[name] = Store.open(golden_store(name), geometry=golden_stores.GEOMETRY)
        return stores[name]

    return of


OpenGolden = Callable[[str], Store]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_the_messages_that_rocketmq_reads(name: str, open_golden: OpenGolden) -> None:
    rows = open_golden(name).rows()
    assert list(golden_stores.differences(rows, golden_stores.expected_rows(name))) == []
    assert all(tuple(row) == COLUMNS for row in rows)


@pytest.mark.parametrize("name", NAMES)
def test_the_log_has_the_blanks_and_the_end_that_rocketmq_finds(name: str, open_golden: OpenGolden) -> None:
    store, lines = open_golden(name), golden_stores.expected(name)
    walk = store.walk()
    blanks = [(found.physical_offset, found.store_size) for found in walk if isinstance(found, Blank)]
    assert blanks == [(line["commitLogOffset"], line["size"]) for line in lines.get("blank", [])]
    assert walk.end_offset == lines["end"][0]["commitLogOffset"] == lines["store"][0]["maxPhyOffset"]
    assert store.log.min_offset == lines["store"][0]["minPhyOffset"]
    assert store.is_aborted == lines["store"][0]["abortFile"]


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_log_ends_in_zeroes_and_not_in_damage(name: str, open_golden: OpenGolden) -> None:
    walk = open_golden(name).walk()
    assert len(list(walk)) > 0
    assert walk.end_reason == ""


def test_a_half_written_last_message_is_named_as_damage(open_golden: OpenGolden) -> None:
    walk = open_golden(DAMAGED).walk()
    assert len(list(walk)) > 0
    assert walk.end_reason != ""


@pytest.mark.parametrize("name", NAMES)
def test_rebuilt_queues_have_the_units_that_rocketmq_recovers(name: str, open_golden: OpenGolden) -> None:
    wanted: dict[tuple[str, int], dict[int, tuple[int, int, int]]] = {}
    for line in golden_stores.expected(name)["cq"]:
        unit = (line["commitLogOffset"], line["size"], line["tagsCode"])
        wanted.setdefault((line["topic"], line["queueId"]), {})[line["cqOffset"]] = unit
    assert open_golden(name).rebuilt_queues() == wanted


@pytest.mark.parametrize("name", WHOLE)
def test_queues_on_disk_are_those_that_rocketmq_reads(name: str, open_golden: OpenGolden) -> None:
    store, lines = open_golden(name), golden_stores.expected(name)
    on_disk = [
        (topic, queue_id, offset, *unit)
        for (topic, queue_id), queue in store.queues.items()
        for offset, unit in queue.units()
    ]
    wanted = [
        (c["topic"], c["queueId"], c["cqOffset"], c["commitLogOffset"], c["size"], c["tagsCode"]) for c in lines["cq"]
    ]
    assert sorted(on_disk) == sorted(wanted)
    bounds = {(q["topic"], q["queueId"]): (q["min"], q["max"]) for q in lines["queue"]}
    for (topic, queue_id), bound in bounds.items():
        queue = store.queue(topic, queue_id)
        assert (queue.min_offset(store.log.min_offset), queue.max_offset) == bound
    assert set(store.queues) <= set(bounds)


def test_a_damaged_store_has_the_first_units_of_each_queue_on_disk(open_golden: OpenGolden) -> None:
    store = open_golden(DAMAGED)
    rebuilt = store.rebuilt_queues()
    for key, queue in store.queues.items():
        on_disk = dict(queue.units())
        assert on_disk.items() <= rebuilt[key].items()
    assert sum(queue.max_offset for queue in store.queues.values()) < sum(map(len, rebuilt.values()))


@pytest.mark.parametrize("name", WHOLE)
def test_getting_from_min_to_max_gives_what_rocketmq_gives(name: str, open_golden: OpenGolden) -> None:
    store = open_golden(name)
    for line in golden_stores.expected(name)["get"]:
        got: list[int] = []
        status, (offset, end) = None, store.topics().get(line["topic"], {}).get(line["queueId"], (0, 0))
        while offset < end:
            result = store.get(line["topic"], line["queueId"], offset)
            status, offset = result.status, result.next_begin_offset
            got += [record.queue_offset for record in result.records]
        wanted = (line["lastStatus"], line["messages"], line["firstQueueOffset"], line["lastQueueOffset"])
        assert (status, len(got), got[0] if got else None, got[-1] if got else None) == wanted


def test_offsets_outside_of_a_queue_are_refused_as_rocketmq_does(open_golden: OpenGolden) -> None:
    store = open_golden("basic-4.9.4")
    high = store.topics()["fx_q1"][0][1]
    answers = [
        (store.get("fx_q1", 0, at).status, store.get("fx_q1", 0, at).next_begin_offset) for at in (-1, high, high + 1)
    ]
    assert answers == [
        (Status.OFFSET_TOO_SMALL, 0),
        (Status.OFFSET_OVERFLOW_ONE, high),
        (Status.OFFSET_OVERFLOW_BADLY, high),
    ]
    assert store.get("fx_q1", 77, 5).status == Status.NO_MESSAGE_IN_QUEUE


@pytest.mark.parametrize("name", WHOLE)
def test_the_index_on_disk_leads_to_what_rocketmq_finds(name: str, open_golden: OpenGolden) -> None:
    store = open_golden(name)
    for line in golden_stores.expected(name)["index"]:
        assert sorted(store.index.query(line["topic"], line["key"])) == line["commitLogOffsets"]


@pytest.mark.parametrize("name", [DAMAGED, "delaytx-5.3.3"])
def test_a_rebuilt_index_leads_to_what_rocketmq_finds(name: str, open_golden: OpenGolden) -> None:
    index = open_golden(name).rebuilt_index()
    for line in golden_stores.expected(name)["index"]:
        assert sorted(index.query(line["topic"], line["key"])) == line["commitLogOffsets"]


@pytest.mark.parametrize("name", [name for name in WHOLE if name.endswith("4.9.4") and not name.startswith("crash")])
def test_a_rebuilt_index_has_the_entries_of_the_brokers_own(name: str, open_golden: OpenGolden) -> None:
    store = open_golden(name)
    rebuilt, on_disk = store.rebuilt_index().files.values(), store.index.files.values()
    assert [file.entries for file in rebuilt] == [file.entries for file in on_disk]
    assert [file.slots for file in rebuilt] == [file.slots for file in on_disk]


@pytest.mark.parametrize("name", NAMES)
def test_config_files_say_what_rocketmq_reads(name: str, open_golden: OpenGolden) -> None:
    configs = open_golden(name).configs
    lines = golden_stores.expected(name)["config"]
    assert {file: with_text_keys(content) for file, content in configs.items()} == {
        line["file"]: line["content"] for line in lines
    }


@pytest.mark.parametrize("name", [name for name in NAMES if golden_stores.version(name) < "5.4"])
def test_config_files_are_written_back_byte_for_byte(name: str, golden_store: PathOf) -> None:
    paths = list((golden_store(name) / "config").glob("*.json"))
    assert paths
    for path in paths:
        assert config_json.dumps(config_json.loads(path.read_text())) == path.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_the_checkpoint_is_not_ahead_of_the_last_message(name: str, open_golden: OpenGolden) -> None:
    store = open_golden(name)
    last = max(record.store_timestamp for record in store.records())
    checkpoint = store.checkpoint
    assert 0 <= checkpoint.min_timestamp <= max(0, last - 3000)
    assert checkpoint.encode() == (store.path / "checkpoint").read_bytes()


@pytest.mark.parametrize("name", ["basic-4.9.4", "basic-5.3.3"])
def test_the_time_of_a_message_leads_to_it_or_to_one_of_the_same_time(name: str, open_golden: OpenGolden) -> None:
    store = open_golden(name)
    for record in store.records()[::97]:
        queue = store.queue(record.topic, record.queue_id)
        for found in (
            store.search_offset_5(record.topic, record.queue_id, record.store_timestamp),
            store.search_offset_5(record.topic, record.queue_id, record.store_timestamp, upper=True),
        ):
            hit = store.message_at(dict(queue.units())[found].physical_offset)
            assert hit is not None
            assert hit.store_timestamp == record.store_timestamp


def with_text_keys(value: config_json.Value) -> config_json.Value:
    """DumpStore prints integer keys as text."""
    if isinstance(value, dict):
        return {str(key): with_text_keys(item) for key, item in value.items()}
    return [with_text_keys(item) for item in value] if isinstance(value, list) else value
