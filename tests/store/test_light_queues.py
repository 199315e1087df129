"""Light queues (LMQ), which list messages of other topics: scans, counts, tails and tables give what pulls give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import rmqfast
from rmqfast import Message
from rmqfast.store import ScanRequest
from tests.store.test_append import TINY

NAMES = ("%LMQ%a", "%LMQ%a,%LMQ%b", "%LMQ%b", "")
LIGHT = "%LMQ%a"
Way = Literal["log", "queue"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> rmqfast.MessageStore:
    path = tmp_path_factory.mktemp("light") / "store"
    with rmqfast.open_store(path, mode="a", options=replace(TINY, multi_dispatch=True)) as writer:
        for n in range(80):
            properties = {"INNER_MULTI_DISPATCH": NAMES[n % 4]} if NAMES[n % 4] else {}
            topic, tags = ("T", "U")[n % 3 == 0], ("t", "u")[n % 5 == 0]
            writer.append(Message(topic, b"%d" % n, tags=tags, queue_id=n % 2, properties=properties))
    return rmqfast.open_store(path)


def pulled(store: rmqfast.MessageStore, start: int = 0, tags: str = "*") -> list[bytes]:
    """The bodies that a consumer of the light queue gets."""
    found: list[bytes] = []
    _, end = store.topics()[LIGHT][0]
    while start < end:
        answer = store.get(LIGHT, 0, start, tags=tags)
        found += [message.body for message in answer.messages if message.body is not None]
        start = answer.next_begin_offset
    return found


def bodies(table: pa.Table) -> list[bytes]:
    found: list[bytes] = table["body"].to_pylist()
    return found


@pytest.mark.parametrize("way", [None, "log", "queue"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_scan_gives_what_pulls_give(store: rmqfast.MessageStore, way: Way | None, threads: int) -> None:
    scan = store.scan(LIGHT, way=way, threads=threads)
    assert len(pulled(store)) == scan.count() == 40
    assert sorted(bodies(scan.to_arrow())) == sorted(pulled(store))
    assert bodies(store.scan(LIGHT, way=way, start_offset=7).to_arrow()) == pulled(store, 7)
    assert bodies(store.scan(LIGHT, way=way, tags="t").to_arrow()) == pulled(store, tags="t")
    within = store.scan(LIGHT, way=way, queue_ids=[0], start_offset=3, end_offset=11)
    assert (within.count(), bodies(within.to_arrow())) == (8, pulled(store, 3)[:8])
    assert store.scan(LIGHT, way=way, queue_ids=[1]).to_arrow().num_rows == 0


def test_the_way_is_by_queue_and_rows_have_the_places_of_their_own_topics(store: rmqfast.MessageStore) -> None:
    scan = store.scan(LIGHT, columns=["topic", "queue_id", "queue_offset"])
    rows = scan.to_arrow().to_pylist()
    assert {row["topic"] for row in rows} == {"T", "U"}
    messages = store.get(LIGHT, 0, 0).messages
    places = [{"topic": m.topic, "queue_id": m.queue_id, "queue_offset": m.queue_offset} for m in messages]
    assert rows[: len(places)] == places
    assert "as it is a light queue" in str(scan.explain())


def test_several_topics_give_each_record_once(store: rmqfast.MessageStore) -> None:
    of_each = [set(bodies(store.scan(topic).to_arrow())) for topic in ("U", LIGHT, "%LMQ%b")]
    together = bodies(store.scan(["U", LIGHT, "%LMQ%b"]).to_arrow())
    assert len(together) == len(set(together))
    assert set(together) == set.union(*of_each)


def test_tails_exports_tables_and_pieces_have_the_same(store: rmqfast.MessageStore, tmp_path: Path) -> None:
    expected = pulled(store)
    with store.tail(LIGHT, start="begin", stop="end") as tail:
        assert [body for batch in tail for body in batch["body"].to_pylist()] == expected
    assert store.export(tmp_path / "out.jsonl", LIGHT).rows == 40
    assert bodies(store.table(LIGHT).to_table()) == expected
    request = ScanRequest(topic=LIGHT)
    pieces, _, _ = store.plan(request, cut_bytes=500)
    assert len(pieces) > 3
    assert bodies(store.scan_pieces(request, pieces).to_arrow()) == expected
