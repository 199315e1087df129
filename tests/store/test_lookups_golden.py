"""Look-ups in stores of real brokers give what RocketMQ's own classes give."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext

import pytest

import rmqfast
from rmqfast import GetMessageStatus, errors
from tests import golden_stores
from tests.golden_stores import NAMES, PathOf
from tests.reference.store import Store

pytestmark = pytest.mark.slow
Queue = tuple[str, int]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(name: str, golden_store: PathOf) -> rmqfast.MessageStore:
    return rmqfast.open_store(golden_store(name))


@pytest.fixture
def reference(name: str, golden_store: PathOf) -> Store:
    return Store.open(golden_store(name), geometry=golden_stores.GEOMETRY)


def bounds_of(store: rmqfast.MessageStore) -> dict[Queue, tuple[int, int]]:
    return {(topic, queue): bound for topic, queues in store.topics().items() for queue, bound in queues.items()}


def read(
    store: rmqfast.MessageStore, topic: str, queue_id: int, low: int, high: int
) -> tuple[GetMessageStatus | None, list[int]]:
    status, offsets = None, []
    while low < high:
        result = store.get(topic, queue_id, low)
        status, low = result.status, result.next_begin_offset
        offsets += [message.queue_offset for message in result.messages]
    return status, offsets


def test_topics_have_the_bounds_that_rocketmq_finds(name: str, store: rmqfast.MessageStore) -> None:
    lines = golden_stores.expected(name)["queue"]
    # queues that were asked for exist in a broker's memory alone
    wanted = {(line["topic"], line["queueId"]): (line["min"], line["max"]) for line in lines if line["max"]}
    assert {queue: bound for queue, bound in bounds_of(store).items() if bound[1]} == wanted


def test_getting_from_min_to_max_gives_what_rocketmq_gives(name: str, store: rmqfast.MessageStore) -> None:
    bounds = bounds_of(store)
    assert golden_stores.expected(name)["get"]
    for line in golden_stores.expected(name)["get"]:
        low, high = bounds.get((line["topic"], line["queueId"]), (0, 0))
        status, offsets = read(store, line["topic"], line["queueId"], low, high)
        ends = (offsets[0], offsets[-1]) if offsets else (None, None)
        wanted = (line["lastStatus"], line["messages"], line["firstQueueOffset"], line["lastQueueOffset"])
        assert (status, len(offsets), *ends) == wanted


def test_messages_by_get_are_the_rows_of_the_log(name: str, store: rmqfast.MessageStore) -> None:
    topic, queue_id = next(queue for queue, bound in bounds_of(store).items() if bound[1] > 8)
    rows = {row["physical_offset"]: row for row in golden_stores.expected_rows(name)}
    for message in store.get(topic, queue_id, 1, max_messages=7).messages:
        row = dataclasses.asdict(message)
        assert list(golden_stores.differences([row], [rows[message.physical_offset]])) == []


def test_the_index_leads_to_what_rocketmq_finds(name: str, store: rmqfast.MessageStore) -> None:
    lines = golden_stores.expected(name)["index"]
    rows = {row["physical_offset"]: row for row in golden_stores.expected_rows(name)}

    def has_key(offset: int, topic: str, key: str) -> bool:
        row = rows[offset]
        return row["topic"] == topic and key in [row["properties"].get("UNIQ_KEY"), *(row["keys"] or "").split(" ")]

    assert lines
    for line in lines[::29]:
        wanted = [offset for offset in line["commitLogOffsets"] if has_key(offset, line["topic"], line["key"])]
        # the half-written message lies in the stretch that no index covers
        with pytest.warns(rmqfast.DamageWarning) if name.startswith("damaged") else nullcontext():
            found = store.query(line["topic"], line["key"])
        assert [message.physical_offset for message in found] == sorted(set(wanted))


def test_every_offset_message_id_leads_to_its_message(name: str, store: rmqfast.MessageStore) -> None:
    for row in golden_stores.expected_rows(name)[::5]:
        assert store.message_by_id(row["offset_msg_id"]).physical_offset == row["physical_offset"]
        assert store.message_at(row["physical_offset"]).msg_id == row["msg_id"]


@pytest.mark.filterwarnings("ignore::rmqfast.DamageWarning")  # one of an id may be the damaged one
def test_a_producers_id_leads_to_the_message_first_stored(name: str, store: rmqfast.MessageStore) -> None:
    rows = golden_stores.expected_rows(name)
    for row in rows[::101]:
        # a retry, a half message and a delivered one keep the id that the producer gave
        first = next(other for other in rows if other["properties"].get("UNIQ_KEY") == row["msg_id"])
        assert store.message_by_id(row["msg_id"]).physical_offset == first["physical_offset"]
        within = store.message_by_id(row["msg_id"], topic=row["topic"])
        assert (within.topic, within.msg_id) == (row["topic"], row["msg_id"])


def test_both_time_rules_give_what_the_reference_gives(
    name: str, store: rmqfast.MessageStore, reference: Store
) -> None:
    bounds, compared, all_records = bounds_of(store), 0, reference.records()
    for (topic, queue_id), queue in reference.queues.items():
        # the reference knows the units on disk alone
        if bounds[topic, queue_id] != (0, queue.max_offset) or not queue.max_offset:
            continue
        compared += 1
        records = [r for r in all_records if (r.topic, r.queue_id) == (topic, queue_id) and r.has_queue_place]
        first, last = records[0].store_timestamp, records[-1].store_timestamp
        for when in {
            0,
            first - 1,
            first,
            *(r.store_timestamp + 1 for r in records[::40]),
            last,
            last + 1,
            last + 10**9,
        }:
            wanted = reference.search_offset_5(topic, queue_id, when)
            assert store.offset_for_time(topic, queue_id, when) == wanted
            older = reference.search_offset_4(topic, queue_id, when)
            assert store.offset_for_time(topic, queue_id, when, rule="4.9.4") == older
    assert compared or reference.is_aborted


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("damaged")], indirect=True)
def test_a_sound_store_is_sound(name: str, store: rmqfast.MessageStore) -> None:
    report, lines = store.verify(), golden_stores.expected(name)
    assert (report.ok, report.damage) == (True, [])
    assert report.notes == [] or report.aborted
    assert (report.messages, report.units + report.unlisted) == (len(lines["msg"]), len(lines["cq"]))
    assert report.aborted == lines["store"][0]["abortFile"]
    assert report.config_files == len(lines["config"])


def test_a_damaged_store_has_just_the_damage_that_was_done(golden_store: PathOf) -> None:
    report = rmqfast.open_store(golden_store("damaged-4.9.4")).verify()
    end = golden_stores.expected("damaged-4.9.4")["end"][0]
    assert [damage.offset for damage in report.damage] == [end["commitLogOffset"]]
    assert (report.ok, report.messages) == (False, end["messages"])
    assert report.unlisted > 0


def test_a_glance_tells_the_version_and_the_ends(name: str, store: rmqfast.MessageStore) -> None:
    info, line = store.info(), golden_stores.expected(name)["store"][0]
    assert (info.version, info.aborted) == (f"{golden_stores.version(name)[0]}.x", line["abortFile"])
    assert (info.min_offset, info.max_offset) == (line["minPhyOffset"], line["maxPhyOffset"])
    sizes = (line["commitLogFileSize"], line["consumeQueueFileSize"])
    assert (info.commit_log_file_size, info.consume_queue_file_size) == sizes
    assert {file.geometry for file in info.index_files} <= {tuple(golden_stores.GEOMETRY)}
    rows = golden_stores.expected_rows(name)
    assert info.first_store_timestamp == rows[0]["store_timestamp"]
    assert info.last_store_timestamp == rows[-1]["store_timestamp"]


def test_offsets_outside_of_a_queue_are_answered_as_a_broker_does(golden_store: PathOf) -> None:
    store = rmqfast.open_store(golden_store("basic-4.9.4"))
    high = store.topics()["fx_q1"][0][1]
    answers = [store.get("fx_q1", 0, offset) for offset in (-1, high, high + 1)]
    assert [(answer.status, answer.next_begin_offset) for answer in answers] == [
        (GetMessageStatus.OFFSET_TOO_SMALL, 0),
        (GetMessageStatus.OFFSET_OVERFLOW_ONE, high),
        (GetMessageStatus.OFFSET_OVERFLOW_BADLY, high),
    ]
    assert store.get("fx_q1", 77, 5).status is GetMessageStatus.NO_MESSAGE_IN_QUEUE


def test_more_than_a_broker_gives_can_be_asked_for(golden_store: PathOf) -> None:
    store = rmqfast.open_store(golden_store("basic-4.9.4"))
    few, many = store.get("fx_q1", 0, 0, max_messages=32), store.get("fx_q1", 0, 0, max_messages=1000)
    assert len(few.messages) <= 32
    # the queue's files have 100 units each
    assert (len(many.messages), many.next_begin_offset) == (100, 100)


def test_tags_that_share_a_hash_move_the_offset_and_are_not_given(golden_store: PathOf) -> None:
    store = rmqfast.open_store(golden_store("basic-4.9.4"))
    both, one = store.get("fx_q1", 0, 0, tags="Aa || BB"), store.get("fx_q1", 0, 0, tags="Aa")
    assert {message.tags for message in both.messages} == {"Aa", "BB"}
    assert {message.tags for message in one.messages} == {"Aa"}
    assert one.next_begin_offset == both.next_begin_offset


def test_unknown_names_are_refused_with_names_like_them(golden_store: PathOf) -> None:
    store = rmqfast.open_store(golden_store("basic-4.9.4"))
    for call in (lambda t: store.get(t, 0, 0), lambda t: store.query(t, "k"), lambda t: store.offset_for_time(t, 0, 0)):
        with pytest.raises(errors.UnknownTopicError, match=r"did you mean fx_q1"):
            call("fx_q11")
    with pytest.raises(errors.UnknownMessageError):
        store.message_by_id("7F00000100005213000000000000014E")
    with pytest.raises(errors.CorruptError, match="magic"):
        store.message_at(335)
    with pytest.raises(errors.ArgumentError):
        store.message_at(1 << 50)
    with pytest.raises(errors.ArgumentError, match="rule"):
        store.offset_for_time("fx_q1", 0, 0, rule="6")  # type: ignore[arg-type]
