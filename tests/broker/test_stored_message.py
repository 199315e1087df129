"""Records as values: what real brokers wrote, and bytes that are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqfast._native import parse_message_id
from rmqfast.broker.messages.stored_message import StoredMessage
from rmqfast.errors import CorruptError
from tests.broker.memory_store import records_of
from tests.reference import record
from tests.reference.host import Host

SMALL = record.complete(
    record.Record(
        "T", 3, 7, 4096, b"body", b"TAGS\x01a", born_host=Host("fd00::2", 5), store_host=Host("10.0.0.1", 10911)
    )
)
BYTES = record.encode(SMALL)


@pytest.mark.parametrize("name", ["delaytx-4.9.4", "delaytx-5.3.3", "basic-4.9.4"])
def test_records_of_real_brokers_are_read_as_the_reference_reads_them(
    name: str, golden_store: Callable[[str], Path]
) -> None:
    count = 0
    for wanted, data in records_of((golden_store(name) / "commitlog").iterdir()):
        found = StoredMessage.parse(data)
        assert (found.topic, found.queue_id, found.queue_offset) == (wanted.topic, wanted.queue_id, wanted.queue_offset)
        assert (found.body, found.body_crc, found.properties) == (wanted.body, wanted.body_crc, wanted.properties)
        assert (found.flag, found.sys_flag, found.physical_offset) == (
            wanted.flag,
            wanted.sys_flag,
            wanted.physical_offset,
        )
        assert (found.born_host, found.store_host) == (str(wanted.born_host), str(wanted.store_host))
        assert (found.born_timestamp, found.store_timestamp) == (wanted.born_timestamp, wanted.store_timestamp)
        assert (found.reconsume_times, found.prepared_transaction_offset) == (
            wanted.reconsume_times,
            wanted.prepared_transaction_offset,
        )
        assert found.offset_msg_id == wanted.offset_msg_id
        host = wanted.store_host
        assert parse_message_id(found.offset_msg_id) == (str(host.ip), host.port, wanted.physical_offset)
        count += 1
    assert count > 150


def test_a_record_is_written_again_as_it_was(golden_store: Callable[[str], Path]) -> None:
    for _, data in records_of((golden_store("delaytx-4.9.4") / "commitlog").iterdir()):
        assert StoredMessage.parse(data).encode() == data


def test_hosts_of_both_kinds_and_long_topics_come_back() -> None:
    assert StoredMessage.parse(BYTES).born_host == "[fd00::2]:5"
    assert StoredMessage.parse(BYTES).encode() == BYTES
    long = record.encode(record.complete(record.Record("%RETRY%" + "g" * 200, 0, 0, 0, b"", v2=True)))
    assert StoredMessage.parse(long).encode() == long


@pytest.mark.parametrize("cut", range(len(BYTES)))
def test_a_record_that_is_cut_is_none(cut: int) -> None:
    with pytest.raises(CorruptError, match="record: expected"):
        StoredMessage.parse(BYTES[:cut])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (BYTES + b"x", f"got 0xdaa320a7 and {len(BYTES)}"),
        (BYTES[:-8] + b"\0\5" + BYTES[-6:], f"parts of {len(BYTES)} bytes, got {len(BYTES) - 1}"),
        (BYTES[:-8] + b"\0\7" + BYTES[-6:], "a part of at most 6 bytes, got 7"),
        (BYTES[:-8] + b"\xff\xff" + BYTES[-6:], "a part of at most 6 bytes, got -1"),
        (BYTES.replace(b"\0\0\0\4body", b"\xff\xff\xff\xffbody"), "bytes, got -1"),
        (BYTES.replace(b"\0\0\0\4body", b"\x7f\xff\xff\xffbody"), "bytes, got 2147483647"),
    ],
)
def test_a_record_whose_lengths_do_not_agree_is_none(data: bytes, said: str) -> None:
    with pytest.raises(CorruptError, match="record: expected") as refused:
        StoredMessage.parse(data)
    assert said in str(refused.value)


@given(at=st.integers(0, len(BYTES) - 1), value=st.integers(0, 255))
def test_a_record_with_another_byte_is_read_or_refused(at: int, value: int) -> None:
    data = BYTES[:at] + bytes([value]) + BYTES[at + 1 :]
    try:
        StoredMessage.parse(data)
    except CorruptError as error:
        assert "record: expected" in str(error)  # noqa: PT017 - either is right


@given(st.binary(max_size=300))
def test_any_bytes_are_no_record(data: bytes) -> None:
    with pytest.raises(CorruptError):
        StoredMessage.parse(data)
