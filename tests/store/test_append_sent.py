"""Appending what a broker gets: hosts, transactions, batches, further queues; and its answers to what it refuses."""

from __future__ import annotations

import itertools
import shutil
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rmqfast
from rmqfast import AppendOptions, Message
from rmqfast.errors import ArgumentError, FlushTimeoutError, StoreBusyError, StoreNotWritableError
from tests.reference import random_store, writer
from tests.reference.consume_queue import SCHEDULE_TOPIC
from tests.reference.host import Host
from tests.reference.index_file import Geometry
from tests.reference.store import Store
from tests.store.test_append import TINY, tree

pytestmark = pytest.mark.slow
TOPICS = tuple(topic for topic in random_store.TOPICS if topic != SCHEDULE_TOPIC)
Sent = writer.Message | tuple[writer.Message, ...]


def message_of(sent: writer.Message) -> Message:
    return Message(
        sent.topic,
        sent.body,
        properties=dict(sent.properties),
        queue_id=sent.queue_id,
        flag=sent.flag,
        born_timestamp=sent.born_timestamp,
    )


def plain(sent: writer.Message, store_host: Host) -> writer.Message:
    """Without what a mapping of properties, or a property string of this package, cannot say."""
    pairs = {name: value for name, value in sent.properties if value and "\x01" not in value and name != "DELAY"}
    first = [(name, pairs.pop(name)) for name in ("KEYS", "TAGS") if name in pairs]
    return replace(sent, properties=(*first, *pairs.items()), compression=None, store_host=store_host)


def append_sent(store: rmqfast.WritableStore, sent: Sent) -> None:
    if isinstance(sent, tuple):
        store.append_batch([message_of(message) for message in sent])
        return
    store.append(
        message_of(sent),
        born_host=str(sent.born_host),
        sys_flag=sent.sys_flag,
        reconsume_times=sent.reconsume_times,
        prepared_transaction_offset=sent.prepared_transaction_offset,
    )


def as_batch(batch: Sequence[writer.Message], store_host: Host) -> tuple[writer.Message, ...]:
    return tuple(replace(plain(message, store_host), sys_flag=0, born_host=store_host) for message in batch)


@settings(max_examples=40)
@given(
    sent=random_store.message_lists(TOPICS),
    store_host=st.sampled_from(random_store.HOSTS),
    property_crc=st.booleans(),
)
def test_what_is_sent_has_the_bytes_that_the_reference_writer_gives_it(
    sent: list[Sent], store_host: Host, property_crc: bool
) -> None:
    wanted: list[Sent] = [
        as_batch(one, store_host) if isinstance(one, tuple) else plain(one, store_host) for one in sent
    ]
    times = [one[0].store_timestamp if isinstance(one, tuple) else one.store_timestamp for one in sent]
    options = replace(TINY, store_host=str(store_host), property_crc=property_crc)
    with TemporaryDirectory() as directory:
        clock = iter(times)
        with rmqfast.open_store(
            Path(directory) / "ours", mode="a", options=options, clock=lambda: next(clock)
        ) as store:
            for one in wanted:
                append_sent(store, one)
        sizes = writer.Options(TINY.file_size, TINY.queue_file_size, Geometry(10, 8), property_crc=property_crc)
        writer.write_store(Path(directory) / "reference", wanted, sizes)
        ours, reference = tree(Path(directory) / "ours"), tree(Path(directory) / "reference")
        assert [name for name in reference if ours.get(name) != reference[name]] == []
        assert [name for name in ours if name not in reference and ours[name].strip(b"\0")] == []


def test_a_batch_goes_to_the_next_file_as_a_whole(tmp_path: Path) -> None:
    with rmqfast.open_store(tmp_path / "s", mode="a", options=TINY) as store:
        store.append(Message("T", b"x" * 3500))
        first, second = store.append_batch([Message("T", b"a" * 200), Message("T", b"b" * 300)])
        assert store.append(Message("T", b"c")).queue_offset == 3
    assert (first.physical_offset, second.physical_offset) == (4096, 4096 + 91 + 1 + 200)
    assert (first.queue_offset, second.queue_offset) == (1, 2)


@pytest.mark.parametrize(
    "batch",
    [
        [Message("T", b""), Message("U", b"")],
        [Message("T", b""), Message("T", b"", queue_id=1)],
        [Message("T", b"", properties={"DELAY": "1"})],
        [Message("T", b"x" * 600)] * 2,
        [Message("T", b"x" * 2000)] * 3,
    ],
    ids=["topics", "queues", "delay", "size as sent", "size of a file"],
)
def test_what_a_producer_cannot_send_as_a_batch_is_refused(batch: list[Message], tmp_path: Path) -> None:
    limit = 10_000 if len(batch) == 3 else 1200
    with rmqfast.open_store(tmp_path / "s", mode="a", options=replace(TINY, max_message_size=limit)) as store:
        with pytest.raises(ArgumentError, match="batch: expected") as refused:
            store.append_batch(batch)
        assert refused.value.put_status == "MESSAGE_ILLEGAL"
        assert store.append_batch([]) == []
        assert store.append(Message("T", b"")).physical_offset == 0


def lists(path: Path) -> dict[str, bytes]:
    return {name: data for name, data in tree(path).items() if name.startswith(("commitlog/", "consumequeue/"))}


def with_queues(names: str, body: bytes) -> Message:
    return Message("T", body, tags="t", properties={"INNER_MULTI_DISPATCH": names}, queue_id=2)


def test_a_message_is_listed_in_further_queues_and_again_when_they_are_lost(tmp_path: Path) -> None:
    options = replace(TINY, multi_dispatch=True)
    with rmqfast.open_store(tmp_path / "s", mode="a", options=options) as store:
        for n in range(12):
            store.append(with_queues("%LMQ%a,%LMQ%b,U" if n % 2 else "%LMQ%a", b"%d" % n))
    with rmqfast.open_store(tmp_path / "s", mode="a", options=options) as store:
        place = store.append(with_queues("%LMQ%a", b"last"))
        found = store.message_at(place.physical_offset)
        assert found.properties["INNER_MULTI_QUEUE_OFFSET"] == "12"
        assert store.topics() == {
            "T": {2: (0, 13)},
            "%LMQ%a": {0: (0, 13)},
            "%LMQ%b": {0: (0, 6)},
            "U": {2: (0, 6)},
        }
        assert [m.body for m in store.get("%LMQ%b", 0, 1).messages] == [b"3", b"5", b"7", b"9"]
    whole = lists(tmp_path / "s")
    shutil.rmtree(tmp_path / "s" / "consumequeue" / "%LMQ%a")
    shutil.rmtree(tmp_path / "s" / "consumequeue" / "U")
    (tmp_path / "s" / "abort").touch()
    with rmqfast.open_store(tmp_path / "s") as reader:
        assert reader.topics()["%LMQ%a"] == {0: (0, 13)}
    rmqfast.store.repair(tmp_path / "s", options=options)
    assert lists(tmp_path / "s") == whole


def test_too_many_further_queues_are_refused(tmp_path: Path) -> None:
    options = replace(TINY, multi_dispatch=True, max_lmq_queues=2)
    with rmqfast.open_store(tmp_path / "s", mode="a", options=options) as store:
        store.append(with_queues("%LMQ%a,%LMQ%b", b""))
        with pytest.raises(ArgumentError, match="at most 2 queues") as refused:
            store.append(with_queues("%LMQ%c", b""))
        assert refused.value.put_status == "LMQ_CONSUME_QUEUE_NUM_EXCEEDED"
        store.append(with_queues("%LMQ%b", b""))
        assert store.topics()["%LMQ%b"] == {0: (0, 2)}
        with pytest.raises(ArgumentError, match="at most 2 queues"):
            store.append(with_queues("%LMQ%c", b""))


def test_a_long_retry_topic_makes_a_v2_record(tmp_path: Path) -> None:
    topic = "%RETRY%" + "g" * 200
    with rmqfast.open_store(tmp_path / "s", mode="a", options=replace(TINY, long_topics=True)) as store:
        store.append(Message(topic, b"retry"))
        store.append(Message("T", b"plain"))
        assert [row["topic"] for row in store.scan().to_arrow().to_pylist()] == [topic, "T"]
    log = (tmp_path / "s" / "commitlog" / f"{0:020}").read_bytes()
    assert log[4:8].hex() == "daa320ab"
    assert log[int.from_bytes(log[:4]) :][4:8].hex() == "daa320a7"


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (Message("t" * 128, b""), "MESSAGE_ILLEGAL"),
        (Message("T", b"x" * 4097), "MESSAGE_ILLEGAL"),
        (Message("T", b"", properties={"a": "x" * 32_767}), "MESSAGE_ILLEGAL"),
        (Message("T", b"", properties={"a": "中" * 11_000}), "PROPERTIES_SIZE_EXCEEDED"),
    ],
    ids=["topic", "body", "characters of properties", "bytes of properties"],
)
def test_a_refused_message_has_the_status_of_a_broker(message: Message, status: str, tmp_path: Path) -> None:
    with rmqfast.open_store(tmp_path / "s", mode="a", options=replace(TINY, max_message_size=4096)) as store:
        with pytest.raises(ArgumentError) as refused:
            store.append(message)
        assert refused.value.put_status == status
    with pytest.raises(StoreNotWritableError) as late:
        store.append(Message("T", b""))
    assert late.value.put_status == "SERVICE_NOT_AVAILABLE"


def test_who_waits_for_a_log_that_is_held_too_long_is_refused(tmp_path: Path) -> None:
    options = AppendOptions(index_slots=1000, index_entries=1_000_000, busy_after=0.0)
    batch = pa.table({"topic": ["T"] * 50_000, "body": [b"x" * 500] * 50_000})
    with rmqfast.open_store(tmp_path / "s", mode="a", options=options) as store:
        refused = list[StoreBusyError]()

        def hold() -> None:
            while not refused:
                with suppress(StoreBusyError):
                    store.append_many(batch)

        thread = threading.Thread(target=hold)
        thread.start()
        while not refused:
            try:
                store.append(Message("T", b""))
                time.sleep(0.002)  # noqa: TID251 - the other one shall have the log, too
            except StoreBusyError as error:
                refused.append(error)
        thread.join()
        assert refused[0].put_status == "OS_PAGECACHE_BUSY"
        assert store.append(Message("T", b"")).queue_offset >= 50_000


def test_who_waits_too_long_for_the_disk_is_told_that_the_message_is_stored(tmp_path: Path) -> None:
    options = replace(TINY, flush="sync", sync_flush_timeout=0.0)
    with rmqfast.open_store(tmp_path / "s", mode="a", options=options) as store:
        late = list[FlushTimeoutError]()

        def append_until(total: itertools.count[int]) -> None:
            while not late and next(total) < 20_000:
                try:
                    store.append(Message("T", b""))
                except FlushTimeoutError as error:
                    late.append(error)

        numbers = itertools.count()
        threads = [threading.Thread(target=append_until, args=(numbers,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert late[0].put_status == "FLUSH_DISK_TIMEOUT"
        offsets = [row["queue_offset"] for row in store.scan("T", columns=["queue_offset"]).to_arrow().to_pylist()]
    assert offsets == list(range(len(offsets)))
    assert Store.open(tmp_path / "s", geometry=Geometry(10, 8)).topics() == {"T": {0: (0, len(offsets))}}


def test_a_message_whose_time_has_come_is_delayed_no_more(tmp_path: Path) -> None:
    with rmqfast.open_store(tmp_path / "s", mode="a") as store:
        message = Message("T", b"x", tags="a", properties={"DELAY": "3", "REAL_TOPIC": "T"})
        assert [store.append(message, is_due=due).queue_id for due in (False, True)] == [2, 0]
        assert store.topics() == {"SCHEDULE_TOPIC_XXXX": {2: (0, 1)}, "T": {0: (0, 1)}}
        (row,) = store.get("T", 0, 0, tags="a").messages
        assert row.properties["DELAY"] == "3"
