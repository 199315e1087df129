"""`Scan.explain`: bounds that no scan exceeds, counted by the system, and what it says of ways, filters and ends."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast import Message
from rmqfast.store import MessageStore, Scan, ScanExplanation
from tests.golden_stores import PathOf

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the reads of a process")

TOPICS = ("T", "rare", "other")


def counts() -> tuple[int, int]:
    """System calls that read, and the bytes that they have read, of this process so far."""
    values = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(values["syscr"]), int(values["rchar"])


def read_of(scan: Scan) -> tuple[int, int]:
    """What reading a scan costs, without the cost of looking at the counts."""
    first, second = counts(), counts()
    before = counts()
    for _ in scan.batches():
        pass
    after = counts()
    return tuple(b - a - (d - c) for a, b, c, d in zip(before, after, first, second, strict=True))  # type: ignore[return-value]


def check(scan: Scan) -> tuple[ScanExplanation, tuple[int, int]]:
    """Compares an explanation with the scan's reads, which it must bound."""
    explanation = scan.explain()
    calls, size = read_of(scan)
    assert None not in {explanation.log_bytes, explanation.log_reads, explanation.queue_bytes, explanation.queue_reads}
    most_bytes = (explanation.log_bytes or 0) + (explanation.queue_bytes or 0)
    most_reads = (explanation.log_reads or 0) + (explanation.queue_reads or 0)
    assert calls <= most_reads, (calls, str(explanation))
    assert size <= most_bytes, (size, str(explanation))
    # a bound that is far away would say nothing; the rest of a file behind its last record is in it
    if explanation.io == "pread" and all(piece.way == "straight" for piece in explanation.pieces):
        assert most_bytes <= size + size // 4 + 8192, (size, str(explanation))
        assert most_reads <= calls + calls // 4 + 4 * len(explanation.pieces), (calls, str(explanation))
    assert scan.count() == explanation.messages or explanation.messages_are != "exact"
    return explanation, (calls, size)


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Imports what a first scan imports, whose files would count."""
    path = tmp_path_factory.mktemp("warm")
    with rmqfast.open_store(path, mode="a") as store:
        store.append(Message("T", b"1"))
    with rmqfast.open_store(path) as reader:
        reader.scan().to_arrow()


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store of three topics in several files, with some bodies that are longer than a block."""
    path, dice = tmp_path_factory.mktemp("mixed"), random.Random(7)
    with rmqfast.open_store(path, mode="a", options=rmqfast.AppendOptions(file_size=4 << 20)) as store:
        for n in range(6000):
            topic = "rare" if n % 500 == 7 else TOPICS[0 if n % 3 else 2]
            size = 600_000 if n % 1500 == 3 else dice.randrange(3000)
            store.append(Message(topic, b"x" * size, tags=f"tag{n % 20}", queue_id=n % 4))
    return path


@pytest.fixture
def reader(mixed: Path) -> Iterator[MessageStore]:
    with rmqfast.open_store(mixed) as store:
        yield store


def random_arguments(dice: random.Random, times: tuple[int, int]) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "topic": dice.choice([None, "T", "T", "rare", ["T", "rare"]]),
        "way": dice.choice([None, "log", "queue"]),
        "threads": dice.choice([1, 1, 3]),
        "tags": dice.choice(["*", "tag3", "tag1 || tag2", "none"]),
        "keys": dice.choice([None, None, ["k"]]),
    }
    if dice.random() < 0.3:
        arguments |= {"queue_ids": dice.sample(range(4), 2), "start_offset": dice.randrange(500)}
    if dice.random() < 0.3:
        arguments["end_time"] = dice.randrange(times[0], times[1] + 2)
    return arguments


@pytest.mark.parametrize("io", ["pread", "mmap"])
def test_no_random_scan_reads_more_than_explained(mixed: Path, io: Any) -> None:
    dice = random.Random(11)
    with rmqfast.open_store(mixed, io=io) as store:
        info = store.info()
        times = (info.first_store_timestamp or 0, info.last_store_timestamp or 0)
        for _ in range(60):
            check(store.scan(**random_arguments(dice, times)))


@pytest.mark.parametrize("name", ["basic-4.9.4", "delaytx-5.3.3", "offsets-4.9.4"])
def test_golden_stores_are_read_within_the_bounds(name: str, golden_store: PathOf) -> None:
    with rmqfast.open_store(golden_store(name)) as store:
        for topic in (None, *sorted(store.topics())[:6]):
            for tags in ("*", "TagA"):
                check(store.scan(topic, tags=tags))


def test_explaining_twice_and_reading_after_it_changes_nothing(reader: MessageStore) -> None:
    scan, other = reader.scan("T", columns=["queue_offset"]), reader.scan("T", columns=["queue_offset"])
    assert scan.explain() == scan.explain()
    assert scan.to_arrow() == other.to_arrow()


def test_an_explanation_reads_little(reader: MessageStore) -> None:
    scan = reader.scan(tags="tag3")
    before = counts()
    scan.explain()
    assert counts()[1] - before[1] < 64 << 10


def test_the_way_has_its_reason(reader: MessageStore) -> None:
    (piece,) = reader.scan("rare").explain().pieces
    assert piece.way == "queue"
    assert piece.reason.startswith("by consume queue, the cheaper way: 12 messages are listed, about 12 pass"), piece
    (piece,) = reader.scan("T", way="log").explain().pieces
    assert piece.way == "straight"
    assert piece.reason.startswith("straight through the log, as asked for: "), piece
    (piece,) = reader.scan().explain().pieces
    assert piece.reason == "straight through the log: all topics are read"
    parts = [part.explain() for part in reader.scan().parts()]
    reasons = {piece.reason for part in parts for piece in part.pieces}
    assert reasons == {"as planned when the scan was divided or pickled"}


def test_filters_that_narrow_are_told_from_those_that_sort_out(reader: MessageStore) -> None:
    def uses(**arguments: Any) -> dict[str, bool]:
        return {each.name: each.narrows_by is not None for each in reader.scan(**arguments).explain().filters}

    assert uses(topic="rare", tags="tag3", keys=["k"]) == {"topic": True, "tags": True, "keys": False}
    assert uses(topic="rare", tags="tag3", way="log") == {"topic": False, "tags": False}
    assert uses(queue_ids=[1], sql="a = 1") == {"queue_ids": False, "sql": False}
    assert uses(end_time=1) == {"end_time": True}
    assert uses(start_time=1) == {"start_time": False}


def test_times_leave_out_files(reader: MessageStore) -> None:
    explanation, (_, size) = check(reader.scan(end_time=1))
    assert not explanation.pieces
    assert size == 0
    assert "of the log behind the pieces" in explanation.not_read[0]
    assert "filter:    end_time: whole files of the log are left out" in str(explanation)


def test_counts_are_exact_where_queues_decide(reader: MessageStore) -> None:
    exact, about = reader.scan("rare").explain(), reader.scan("T", tags="tag3").explain()
    assert (exact.messages, exact.messages_are) == (12, "exact")
    assert about.messages_are == "about"
    assert about.messages is not None
    assert abs(about.messages - 200) < 100
    assert reader.scan().explain().messages_are == "unknown"
    limited = reader.scan("rare").limit(5).explain()
    assert (limited.messages, limited.limit) == (5, 5)
    assert "the scan may end earlier" in str(limited)


def test_unwritten_ends_and_other_queues_are_named(reader: MessageStore) -> None:
    explanation = reader.scan("T", queue_ids=[0, 1]).explain()
    assert any("behind the end of the log, which are not written" in text for text in explanation.not_read)
    assert "2 other queues of the topic" in explanation.not_read


def test_a_store_that_is_open_for_appending_is_explained(tmp_path: Path) -> None:
    with rmqfast.open_store(tmp_path, mode="a", options=rmqfast.AppendOptions(file_size=8 << 20)) as store:
        for n in range(300):
            store.append(Message("T", b"x" * n))
        explanation = store.scan("T").explain()
        assert explanation.not_read[0].startswith("where the log ends is not known yet")
        calls, size = read_of(store.scan("T"))
        assert calls <= (explanation.log_reads or 0) + (explanation.queue_reads or 0)
        assert size <= (explanation.log_bytes or 0) + (explanation.queue_bytes or 0)


def test_texts_and_json_tell_the_same(reader: MessageStore) -> None:
    explanation = reader.scan("rare", tags="tag3").explain()
    values = json.loads(json.dumps(explanation.to_dict()))
    assert values["log_bytes"] == explanation.log_bytes
    assert values["pieces"][0]["reason"] == explanation.pieces[0].reason
    assert values["filters"] == [asdict(used) for used in explanation.filters]
    assert explanation._repr_html_() == f"<pre>{explanation}</pre>".replace("'", "&#x27;")
