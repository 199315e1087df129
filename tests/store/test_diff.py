"""Two stores, message by message: what only one of them has, and what differs."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast.errors import DamageWarning, UnknownTopicError
from rmqfast.store import Difference, MessageStore, StoreDiff, diff_stores
from tests.cli.command_line import run
from tests.golden_stores import PathOf
from tests.store.small_store import small_store

OPTIONS = rmqfast.AppendOptions(file_size=1 << 16, queue_file_size=2000, index_slots=16, index_entries=400)
OWN = ("physical_offset", "msg_id", "offset_msg_id", "store_host", "broker_name")


def messages_of(store: MessageStore) -> dict[tuple[str, int, int], dict[str, Any]]:
    rows = store.scan().to_arrow().to_pylist()
    return {
        (row["topic"], row["queue_id"], row["queue_offset"]): {name: row[name] for name in row if name not in OWN}
        for row in rows
    }


def expected(a: MessageStore, b: MessageStore) -> StoreDiff:
    """The slow reference: both stores in memory."""
    in_a, in_b = messages_of(a), messages_of(b)
    kinds = {place: kind_of(in_a.get(place), in_b.get(place)) for place in sorted(in_a.keys() | in_b.keys())}
    counts = {name: sum(kind == name for kind in kinds.values()) for name in ("equal", "only a", "only b", "changed")}
    return StoreDiff(
        equal=counts["equal"],
        only_a=counts["only a"],
        only_b=counts["only b"],
        changed=counts["changed"],
        differences=list(ranges(kinds)),
        more=0,
    )


def kind_of(a: dict[str, Any] | None, b: dict[str, Any] | None) -> Any:
    if a is None or b is None:
        return "only b" if a is None else "only a"
    return "equal" if a == b else "changed"


def ranges(kinds: dict[tuple[str, int, int], Any]) -> Iterator[Difference]:
    different = [(place, kind) for place, kind in kinds.items() if kind != "equal"]
    numbered = enumerate(different)
    key = lambda item: (item[1][0][:2], item[1][1], item[1][0][2] - item[0])  # noqa: E731 - neighbours have one number
    for (queue, kind, _), group in itertools.groupby(numbered, key):
        offsets = [place[2] for _, (place, _) in group]
        yield Difference(queue[0], queue[1], kind, offsets[0], offsets[-1] + 1)


def random_store(path: Path, seed: int, common: int) -> None:
    """Stores with one seed for the first messages, and with their own for the others."""
    shared, own = random.Random(7), random.Random(seed)
    number = 0
    with rmqfast.open_store(path, mode="a", options=OPTIONS, clock=lambda: 1_700_000_000_000 + number) as store:
        for number in range(common + own.randrange(200)):
            r = shared if number < common else own
            body = r.randbytes(r.randrange(60))
            message = rmqfast.Message(
                f"T{r.randrange(3)}", body, tags=r.choice(["a", "b", None]), properties={"n": str(r.randrange(9))}
            )
            # some of the shared messages have another body here
            if number < common and own.random() < 0.01:
                message = rmqfast.Message(message.topic, b"changed", tags=message.tags)
            store.append(message, born_host="127.0.0.1:1")


@pytest.mark.parametrize("seed", range(4))
def test_random_stores_differ_where_their_rows_do(tmp_path: Path, seed: int) -> None:
    for name, own in (("a", 2 * seed), ("b", 2 * seed + 1)):
        random_store(tmp_path / name, own, common=300)
    with rmqfast.open_store(tmp_path / "a") as a, rmqfast.open_store(tmp_path / "b") as b:
        found = diff_stores(a, b)
        assert found == expected(a, b)
        assert not found.is_equal
        assert found.equal > 100


def test_a_copy_and_an_export_are_equal(golden_store: PathOf, tmp_path: Path) -> None:
    path = golden_store("basic-4.9.4")
    shutil.copytree(path, tmp_path / "copy")
    with rmqfast.open_store(path) as store, rmqfast.open_store(tmp_path / "copy") as copy:
        report = store.export(tmp_path / "export", "fx_q4")
        assert diff_stores(store, copy).is_equal
        with rmqfast.open_store(report.path or "") as export:
            found = diff_stores(store, export, ["fx_q4"])
            assert (found.is_equal, found.equal) == (True, report.rows)


def test_a_topic_that_neither_store_has_is_refused(golden_store: PathOf) -> None:
    with rmqfast.open_store(golden_store("basic-4.9.4")) as store:
        assert diff_stores(store, store, "fx_q1").equal == diff_stores(store, store, ["fx_q1"]).equal == 1259
        with pytest.raises(UnknownTopicError, match="unknown topic 'fx_q' in "):
            diff_stores(store, store, ["fx_q1", "fx_q"])


def test_what_damage_lost_is_a_difference_and_told(tmp_path: Path) -> None:
    small = small_store(tmp_path / "a")
    shutil.copytree(small.path, tmp_path / "b")
    small.patch(small.records[25].physical_offset, bytes(8))
    with rmqfast.open_store(small.path) as a, rmqfast.open_store(tmp_path / "b") as b:
        with pytest.warns(DamageWarning, match="1 damaged places") as caught:
            found = diff_stores(a, b)
        assert found.differences == [Difference("T", 0, "only b", 25, 26)]
        assert {warning.filename for warning in caught} == {__file__}


def test_the_command_prints_ranges_and_ends_with_1_if_stores_differ(golden_store: PathOf, tmp_path: Path) -> None:
    path = golden_store("basic-4.9.4")
    with rmqfast.open_store(path) as store:
        store.export(tmp_path / "part", "fx_q1", end_offset=1000)
    same = run("store", "diff", path, path)
    assert (same.exit_code, same.stderr.strip()) == (0, "2,779 equal, 0 only a, 0 only b, 0 changed")
    lines = run("store", "diff", path, tmp_path / "part", "--topic", "fx_q1", "-o", "jsonl")
    assert lines.exit_code == 1
    [line] = map(json.loads, lines.stdout.splitlines())
    assert line == {"topic": "fx_q1", "queue_id": 0, "kind": "only a", "start": 1000, "end": 1259}
    whole = json.loads(run("store", "diff", path, tmp_path / "part", "--topic", "fx_q1", "-o", "json").stdout)
    assert whole == {"equal": 1000, "only_a": 259, "only_b": 0, "changed": 0, "differences": [line], "more": 0}
