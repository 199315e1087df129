"""A pull within a broker's limits, and the other questions that a broker answers from queue and log."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast.errors import ArgumentError, UnknownTopicError
from tests.golden_stores import PathOf, unpack
from tests.interop.rocketmq import java
from tests.reference.writer import Message, Options, write_store
from tests.store.scanned import opened
from tests.store.small_store import small_store

Question = dict[str, Any]


def filled(path: Path, count: int, size: int) -> rmqfast.MessageStore:
    """One queue of records of one size."""
    messages = [Message("T", bytes(size), store_timestamp=1_700_000_000_000 + n) for n in range(count)]
    return opened(write_store(path, messages, Options(consume_queue_file_size=20_000)).path)


def test_a_broker_gives_32_messages_and_8_of_what_is_on_the_disk_alone(tmp_path: Path) -> None:
    store = filled(tmp_path / "store", 200, 0)
    end, size = store.info().max_offset, store.get("T", 0, 0).messages[0].store_size

    def pulled(offset: int, memory: int, **caps: int) -> tuple[int, bool]:
        limits = rmqfast.GetLimits(physical_memory=memory, **caps)
        result = store.get("T", 0, offset, max_messages=1000, limits=limits)
        assert result.next_begin_offset == offset + len(result.messages)
        return len(result.messages), result.suggest_pulling_from_slave

    assert pulled(0, end * 10) == (32, False)
    assert pulled(0, end) == (8, True)
    assert pulled(190, end) == (10, False)
    assert pulled(0, end, count_in_disk=20, access_ratio=50) == (20, True)
    assert pulled(0, end, count_in_memory=5, access_ratio=100) == (5, False)
    # the bound itself is in memory: 60 of 200 records
    at_bound = rmqfast.GetLimits(physical_memory=60 * size, access_ratio=100)
    assert [store.check_in_disk("T", 0, offset, limits=at_bound) for offset in (139, 140)] == [True, False]
    # eight from the disk, and then those that are in memory go on to 32
    assert pulled(135, 60 * size, access_ratio=100) == (32, False)
    assert pulled(130, 60 * size, access_ratio=100) == (8, True)


def test_nothing_is_on_the_disk_where_there_is_no_message(golden_store: PathOf) -> None:
    store, all_on_disk = opened(golden_store("basic-4.9.4")), rmqfast.GetLimits(physical_memory=0)
    high = store.topics()["fx_q1"][0][1]
    offsets = (-1, 0, high - 1, high, 1 << 40)
    found = [store.check_in_disk("fx_q1", 0, offset, limits=all_on_disk) for offset in offsets]
    assert found == [False, True, True, False, False]
    assert store.check_in_disk("fx_q1", 77, 0, limits=all_on_disk) is False
    assert store.check_in_disk("fx_q1", 0, 0) is False
    with pytest.raises(UnknownTopicError):
        store.check_in_disk("fx_q11", 0, 0)


@pytest.mark.parametrize("values", [{"count_in_disk": -1}, {"bytes_in_memory": 1 << 31}, {"physical_memory": -1}])
def test_limits_out_of_range_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(values))):
        rmqfast.GetLimits(**values)


def test_the_earliest_time_is_that_of_the_first_message_that_can_be_read(tmp_path: Path) -> None:
    start = 1_700_000_000_000
    messages = [Message(f"T{n % 2}", b"x", queue_id=n % 4, store_timestamp=start + n) for n in range(12)]
    path = write_store(tmp_path / "store", messages, Options(commitlog_file_size=400)).path
    store = opened(path)
    assert (store.earliest_time(), store.earliest_time("T1"), store.earliest_time("T1", 3)) == (
        start,
        start + 1,
        start + 3,
    )
    assert store.earliest_time("T1", 9) is None
    # retention takes the first two files: four messages each
    for file in sorted((path / "commitlog").iterdir())[:2]:
        file.unlink()
    store = opened(path)
    assert (store.earliest_time(), store.earliest_time("T1"), store.earliest_time("T1", 3)) == (
        start + 8,
        start + 9,
        start + 11,
    )
    with pytest.raises(UnknownTopicError):
        store.earliest_time("U")
    with pytest.raises(ArgumentError, match="queue_id"):
        store.earliest_time(None, 3)


def test_the_earliest_time_passes_what_is_damaged_and_is_none_without_messages(tmp_path: Path) -> None:
    small = small_store(tmp_path / "store")
    small.patch(4, b"\xff" * 4)
    second = small.records[1].store_timestamp
    assert (opened(small.path).earliest_time(), opened(small.path).earliest_time("T", 0)) == (second, second)
    (tmp_path / "empty" / "commitlog").mkdir(parents=True)
    assert opened(tmp_path / "empty").earliest_time() is None


def test_a_tag_whose_hash_is_elsewhere_is_found(tmp_path: Path) -> None:
    """An address in `consumequeue_ext` stands where the hash was."""
    small = small_store(tmp_path / "store")
    wanted = [record.queue_offset for record in small.records if record.tags == "t1"]
    unit = bytearray(small.queue_file.read_bytes()[wanted[3] * 20 : wanted[3] * 20 + 20])
    unit[12:] = (-(1 << 63) + 40).to_bytes(8, "big", signed=True)
    small.patch_unit(wanted[3], bytes(unit))
    result = opened(small.path).get("T", 0, 0, max_messages=1000, tags="t1")
    assert [message.queue_offset for message in result.messages] == wanted


def think_of_questions(store: rmqfast.MessageStore, end: int) -> Iterator[Question]:
    r = random.Random(1)
    for topic, queues in store.topics().items():
        for queue_id, (low, high) in queues.items():
            where = {"topic": topic, "queueId": queue_id}
            yield {**where, "earliest": True}
            for _ in range(12):
                memory = r.choice([0, r.randrange(3 * end), 1 << 40])
                offset = r.choice([r.randrange(low - 1, high + 2), r.randrange(low, high + 1)])
                tags = r.choice(["*", "TagA", "Aa", "BB || TagA", "nobody's"])
                yield {**where, "memory": memory, "offset": offset, "max": r.choice([1, 5, 9, 32, 100]), "tags": tags}
                yield {**where, "memory": memory, "inDisk": offset}


def answer(store: rmqfast.MessageStore, question: Question) -> dict[str, Any]:
    topic, queue_id = question["topic"], question["queueId"]
    if "earliest" in question:
        time = store.earliest_time(topic, queue_id)
        return {"earliest": -1 if time is None else time}
    limits = rmqfast.GetLimits(physical_memory=question["memory"])
    if "inDisk" in question:
        return {"inDisk": store.check_in_disk(topic, queue_id, question["inDisk"], limits=limits)}
    most, tags = question["max"], question["tags"]
    result = store.get(topic, queue_id, question["offset"], max_messages=most, tags=tags, limits=limits)
    return {
        "status": result.status.value,
        "next": result.next_begin_offset,
        "min": result.min_offset,
        "max": result.max_offset,
        "offsets": [message.queue_offset for message in result.messages],
        "slave": result.suggest_pulling_from_slave,
    }


def tags_of(store: rmqfast.MessageStore, topic: str, queue_id: int) -> dict[int, str | None]:
    rows = store.scan(topic, queue_ids=[queue_id], columns=["queue_offset", "tags"]).to_arrow().to_pylist()
    return {row["queue_offset"]: row["tags"] for row in rows}


def as_client(theirs: dict[str, Any], question: Question, store: rmqfast.MessageStore) -> dict[str, Any]:
    """What the client leaves of the answer: the broker compares hashes alone."""
    wanted = {tag.strip() for tag in question.get("tags", "*").split("||")}
    if "offsets" not in theirs or wanted == {"*"}:
        return theirs
    tags = tags_of(store, question["topic"], question["queueId"])
    return theirs | {"offsets": [offset for offset in theirs["offsets"] if tags[offset] in wanted]}


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["whole", "slice"])
def test_rocketmq_gives_the_same_answers(kind: str, tmp_path: Path) -> None:
    path = unpack("basic-4.9.4", tmp_path)
    if kind == "slice":
        opened(path).export(tmp_path / "slice", tags="Aa || BB")
        path = tmp_path / "slice"
    store = opened(path)
    questions = list(think_of_questions(store, store.info().max_offset))
    asked = "".join(json.dumps(question) + "\n" for question in questions)
    # what was compiled takes the memory for a constant
    theirs = [json.loads(line) for line in java("4.9.4", "Ask", path, extra="-Xint", stdin=asked).splitlines()]
    pairs = zip(questions, theirs, strict=True)
    differ = [(q, answer(store, q), t) for q, t in pairs if answer(store, q) != as_client(t, q, store)]
    assert differ[:5] == []
    assert (
        {t["inDisk"] for t in theirs if "inDisk" in t} == {t["slave"] for t in theirs if "slave" in t} == {True, False}
    )
