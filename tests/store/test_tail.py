"""Following a store: what a scan gives, and then what is appended, each message once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast import AppendOptions, Message, Tail, WritableStore
from rmqfast.errors import ArgumentError, DamageWarning, ExpressionError, UnknownTopicError
from tests.golden_stores import PathOf
from tests.store.ctrl_c import check_ends_by_ctrl_c
from tests.waiting import collect, until

NOW = 1_700_000_000_000


def numbers(tail: Tail, most: int | None = None) -> list[int]:
    """The numbers that the bodies are, until the tail ends or `most` came."""
    found: list[int] = []
    for batch in tail:
        found += [int(body) for body in batch.column("body").to_pylist()]
        if most is not None and len(found) >= most:
            break
    return found


def fill(store: WritableStore, first: int, end: int) -> None:
    numbers = range(first, end)
    store.append_many(Message("T", b"%d" % n, tags=f"t{n % 3}", keys=f"k{n}", queue_id=n % 2) for n in numbers)


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[WritableStore]:
    """A store of a hundred messages, in several files, to which more can be appended."""
    options = AppendOptions(file_size=4096, queue_file_size=200, index_slots=10, index_entries=40)
    clock = iter(range(NOW, NOW + 10_000_000, 1000))
    with rmqfast.open_store(tmp_path / "s", mode="a", options=options, clock=lambda: next(clock)) as store:
        for n in range(100):
            fill(store, n, n + 1)
        yield store


@pytest.mark.parametrize(
    ("topic", "options"),
    [
        (None, {}),
        ("fx_q1", {}),
        ("fx_q1", {"tags": "Aa || BB", "queue_ids": [0]}),
        ("fx_plain", {"keys": ["Aa1"]}),
        ("fx_q1", {"sql": "TAGS IS NOT NULL", "columns": ["tags", "body"]}),
    ],
)
def test_a_tail_from_the_beginning_gives_what_a_scan_gives(
    topic: str | None, options: dict[str, Any], golden_store: PathOf
) -> None:
    store = rmqfast.open_store(golden_store("basic-4.9.4"), broker_name="b")
    rows = [row for batch in store.tail(topic, start="begin", stop="end", **options) for row in batch.to_pylist()]
    assert rows
    assert rows == store.scan(topic, way="log", **options).to_arrow().to_pylist()


@pytest.mark.parametrize("name", ["delaytx-4.9.4", "delaytx-5.3.3", "crash-4.9.4", "damaged-4.9.4", "basic-5.4.0"])
def test_every_record_of_a_real_store_comes_half_messages_of_transactions_included(
    name: str, golden_store: PathOf
) -> None:
    store = rmqfast.open_store(golden_store(name))
    expected = store.scan(way="log")
    with pytest.warns(DamageWarning) if name.startswith("damaged") else nullcontext():
        rows = expected.to_arrow().to_pylist()
    tail = store.tail(start="begin")

    def polled() -> list[dict[str, Any]]:
        batch = tail.poll()
        return [] if batch is None else batch.to_pylist()

    # what no queue vouches for comes only once it has stayed as it is for a moment
    assert collect(polled, len(rows)) == rows


def test_what_is_appended_comes_at_once_and_is_not_held_back(filled: WritableStore) -> None:
    with filled.tail("T") as tail:
        assert tail.poll() is None
        for n in range(100, 400, 10):
            fill(filled, n, n + 10)
            batch = tail.poll()
            assert batch is not None
            assert [int(body) for body in batch.column("body").to_pylist()] == list(range(n, n + 10))
        assert tail.poll() is None
        assert (tail.damage, tail.retained) == ([], [])


def test_the_last_messages_come_first_and_then_those_that_follow(filled: WritableStore) -> None:
    with filled.tail("T", tags="t0", last=3) as tail:
        fill(filled, 100, 104)
        assert numbers(tail, 4) == [93, 96, 99, 102]
    assert numbers(filled.tail("T", last=1000, stop="end")) == list(range(104))
    assert numbers(filled.tail("T", tags="none", last=5, stop="end")) == []


def test_a_start_by_time_gives_what_was_stored_then_or_later(filled: WritableStore) -> None:
    when = datetime.fromtimestamp(NOW / 1000 + 60, UTC)
    for start in (when, when.isoformat()):
        assert numbers(filled.tail("T", start=start, stop="end")) == list(range(60, 100))


def test_wrong_arguments_say_what_they_may_be(filled: WritableStore) -> None:
    for options in ({"start": -1}, {"last": -1}, {"last": 1, "start": "begin"}, {"stop": -5}, {"poll_interval": -1.0}):
        with pytest.raises(ArgumentError, match="expected"):
            filled.tail(**options)
    with pytest.raises(ArgumentError, match="start: expected ISO 8601"):
        filled.tail(start="beginning")
    with pytest.raises(UnknownTopicError, match="did you mean T"):
        filled.tail("TT")
    with pytest.raises(ExpressionError):
        filled.tail("T", sql="a >")


def test_other_threads_run_while_a_tail_waits_and_end_the_wait_by_closing(filled: WritableStore) -> None:
    with filled.tail("T", poll_interval=0.01) as tail, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(next, tail)
        until(waiting.running)
        assert tail.position > 0
        fill(filled, 100, 101)
        assert waiting.result().column("body").to_pylist() == [b"100"]
    with filled.tail("T", poll_interval=3600) as tail, ThreadPoolExecutor(1) as pool:
        ending = pool.submit(list, tail)
        until(ending.running)
        tail.close()
        assert ending.result() == list(tail) == []


def test_ctrl_c_ends_the_wait(filled: WritableStore) -> None:
    check_ends_by_ctrl_c(partial(filled.tail(poll_interval=3600)._native.next_batch, wait=True))  # noqa: SLF001 - no Python may run in it: that looks by itself


APPENDER = """
import sys
import rmqfast
from rmqfast import AppendOptions, Message
path, end = sys.argv[1], int(sys.argv[2])
options = AppendOptions(file_size=1 << 20, queue_file_size=20000, index_slots=1000, index_entries=4000)
with rmqfast.open_store(path, mode="a", options=options) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    n = 0
    while n < end:
        count = 1 + n % 50
        batch = [Message("T", b"%d" % i, tags="t%d" % (i % 3), queue_id=i % 4) for i in range(n, n + count)]
        store.append_many(batch) if count > 1 else store.append(batch[0])
        n += count
print(n, flush=True)
"""


def test_four_readers_see_each_message_once_that_another_process_appends_at_full_speed(tmp_path: Path) -> None:
    def read(tail: Tail, found: list[int]) -> None:
        for batch in tail:
            found += [int(body) for body in batch.column("body").to_pylist()]

    command = [sys.executable, "-c", APPENDER, str(tmp_path / "s"), "20000"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as appender,
        ThreadPoolExecutor(4) as pool,
        ExitStack() as stack,
    ):
        assert appender.stdin is not None
        assert appender.stdout is not None
        assert appender.stdout.readline() == "ready\n"
        store = rmqfast.open_store(tmp_path / "s")
        tails = [stack.enter_context(store.tail(poll_interval=interval)) for interval in (0, 0.001, 0.05, 0.2)]
        seen: list[list[int]] = [[] for _ in tails]
        reading = [pool.submit(read, tail, found) for tail, found in zip(tails, seen, strict=True)]
        appender.stdin.write("\n")
        appender.stdin.flush()
        count = int(appender.stdout.readline())
        until(lambda: all(len(found) >= count for found in seen), lambda: [len(found) for found in seen])
        for tail, each in zip(tails, reading, strict=True):
            tail.close()
            each.result()
    assert [found == list(range(count)) for found in seen] == [True] * 4
    assert [(tail.damage, tail.retained) for tail in tails] == [([], [])] * 4


def test_a_look_where_nothing_came_is_one_read_of_eight_bytes(filled: WritableStore) -> None:
    looks = 100  # within the second after which a tail looks at the queues
    counts = Path("/proc/thread-self/io")
    with filled.tail("T") as tail:
        assert tail.poll() is None
        before, again = (counts.read_text() for _ in range(2))
        for _ in range(looks):
            assert tail.poll() is None
        after = counts.read_text()
    calls, read = (counted(after, name) - counted(again, name) for name in ("syscr", "rchar"))
    # between two looks at the counts the first of them is read
    assert calls - (counted(again, "syscr") - counted(before, "syscr")) == looks
    assert read - len(again) == 8 * looks


def counted(counts: str, name: str) -> int:
    """What a thread has read so far: `syscr` calls, `rchar` bytes."""
    return int(dict(line.split(": ") for line in counts.splitlines())[name])
