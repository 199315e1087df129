"""The formats of the reference against bytes that RocketMQ's own classes wrote."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import compression, config_json, message_id, properties, random_store, record
from tests.reference.consume_queue import Unit, java_hash, tags_code, unit_of
from tests.reference.host import Host
from tests.reference.index_file import Entry, Geometry, IndexFile, IndexService, key_hash
from tests.reference.record import Malformed, Record

# topic T, written by 4.9.4 with three properties
GOLDEN_4 = bytes.fromhex(
    "00000081daa320a73610a686000000000000000700000000000000000000000000000000000000000000018bcfe56800"
    "01020304000015b3000001a1fc12f11f0a00000100002a9f0000000000000000000000000000000568656c6c6f0154"
    "00204b455953016b31206b3202554e49515f4b455901553102544147530154616741"
)
# by 5.3.3 with enabledAppendPropCRC
GOLDEN_5 = bytes.fromhex(
    "0000008bdaa320a73610a686000000000000000700000000000000000000000000000000000000000000018bcfe56800"
    "01020304000015b3000001a1fc1c0f6d0a00000100002a9f0000000000000000000000000000000568656c6c6f0154"
    "002a554e49515f4b455901553102544147530154616741025f5f435243333223013037343635323134363002"
)
STORED = Record(
    topic="T",
    queue_id=0,
    queue_offset=0,
    physical_offset=0,
    body=b"hello",
    flag=7,
    born_timestamp=0x18BCFE56800,
    born_host=Host("1.2.3.4", 5555),
    store_host=Host("10.0.0.1", 10911),
)


def golden_4() -> Record:
    pairs = [("KEYS", "k1 k2"), ("UNIQ_KEY", "U1"), ("TAGS", "TagA")]
    stored = replace(STORED, store_timestamp=0x1A1FC12F11F, property_bytes=properties.encode(pairs))
    return record.complete(stored)


def test_a_record_is_encoded_as_4_9_4_does() -> None:
    assert record.encode(golden_4()) == GOLDEN_4
    assert record.decode(GOLDEN_4) == golden_4()
    assert unit_of(golden_4()).encode() == bytes.fromhex("000000000000000000000081000000000027a807")


def test_a_record_with_a_property_crc_is_encoded_as_5_3_3_does() -> None:
    stored = replace(
        STORED,
        store_timestamp=0x1A1FC1C0F6D,
        property_bytes=properties.encode([("UNIQ_KEY", "U1"), ("TAGS", "TagA")], trailing_separator=True),
    )
    assert record.encode(record.complete(stored, property_crc=True)) == GOLDEN_5
    assert record.verify_property_crc(GOLDEN_5)
    assert not record.verify_property_crc(GOLDEN_5.replace(b"hello", b"hellO"))


def test_an_empty_message_has_92_bytes_and_the_id_of_its_place() -> None:
    second = replace(STORED, body=b"", queue_id=1, physical_offset=0x81, property_bytes=b"")
    stored = record.complete(second)
    assert (stored.store_size, stored.body_crc) == (92, 0)
    assert stored.msg_id == stored.offset_msg_id == "0A00000100002A9F0000000000000081"
    assert message_id.decode(stored.msg_id) == (STORED.store_host, 0x81)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("*", 42),
        ("订单", 1129459),
        ("😀", 1772899),
        ("polygenelubricants", -2147483648),
        ("T#U1", 2538763),
        ("T#k1", 2539445),
        ("", 0),
    ],
)
def test_a_hash_code_is_javas(text: str, wanted: int) -> None:
    assert java_hash(text) == wanted


def test_the_index_of_one_message_is_the_one_that_rocketmq_builds() -> None:
    index = IndexService(Geometry(slots=10, entries=8))
    index.build(golden_4(), "20231114221320000")
    file = index.files["20231114221320000"]
    time = 0x1A1FC12F11F
    assert (file.begin_timestamp, file.end_timestamp, file.slots_used, file.next_entry) == (time, time, 3, 4)
    assert file.slots == {3: 1, 5: 2, 6: 3}
    hashes = [0x0026BD0B, 0x0026BFB5, 0x0026BFB6]
    assert list(file.entries.values()) == [Entry(value, 0, 0, 0) for value in hashes]
    assert IndexFile.decode(file.encode(), file.geometry) == file
    assert index.query("T", "k2") == [0]


def test_a_key_whose_hash_code_has_no_absolute_value_hashes_to_zero() -> None:
    key = _key_of_min_hash("b")
    assert java_hash(f"b#{key}") == -(1 << 31)
    assert key_hash("b", key) == 0


def _key_of_min_hash(topic: str) -> str:
    """Seven characters that bring the hash of "topic#..." to -2^31, found digit by digit in base 31."""
    rest = (-(1 << 31) - java_hash(f"{topic}#" + "\0" * 7)) % (1 << 32) - 40 * sum(31**i for i in range(7))
    rest %= 1 << 32
    digits = []
    for power in range(6, -1, -1):
        digit, rest = divmod(rest, 31**power)
        digits.append(chr(40 + digit))
    return "".join(digits)


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (b"", {}),
        (b"a\x01b", {"a": "b"}),
        (b"a\x01b\x02", {"a": "b"}),
        (b"a\x01b\x01c", {"a": "b\x01c"}),
        (b"a\x01\x02b\x01c", {"b": "c"}),
        (b"\x01b\x02c", {}),
        (b"a\x01b\x02a\x01c", {"a": "c"}),
        (b"\x02\x02a\x01b", {"a": "b"}),
    ],
)
def test_properties_are_parsed_as_rocketmq_does(stored: bytes, wanted: dict[str, str]) -> None:
    assert properties.decode(stored) == wanted


def test_a_delayed_message_has_its_time_of_delivery_for_a_tags_code() -> None:
    def code(delay: str) -> int:
        pairs = properties.encode([("TAGS", "TagA"), ("DELAY", delay)])
        return tags_code(replace(STORED, topic="SCHEDULE_TOPIC_XXXX", store_timestamp=1_000_000, property_bytes=pairs))

    assert [code("1"), code("18"), code("99"), code("0")] == [1_001_000, 8_200_000, 8_200_000, 2598919]


def test_integer_keys_are_told_from_texts_that_look_like_them() -> None:
    text = '{\n\t"a{0:1}":{0:5,1:7\n\t},\n\t"b":{"0":"{3:4}"}\n}'
    assert config_json.loads(text) == {"a{0:1}": {0: 5, 1: 7}, "b": {"0": "{3:4}"}}


@pytest.mark.parametrize("kind", ["lz4", "zstd", "zlib"])
@given(body=st.binary(max_size=300))
def test_a_compressed_body_comes_back(kind: str, body: bytes) -> None:
    stored, sys_flag = compression.compress(body, kind)
    assert compression.decompress(stored, sys_flag) == body


def test_a_compressed_body_without_a_type_is_zlib_and_an_unknown_type_is_refused() -> None:
    stored, _ = compression.compress(b"body", "zlib")
    assert compression.decompress(stored, 0x1) == b"body"
    with pytest.raises(ValueError, match="unknown compression type"):
        compression.decompress(stored, 0x401)


@given(cut=st.integers(0, len(GOLDEN_4) - 1))
def test_a_cut_record_is_malformed(cut: int) -> None:
    with pytest.raises(Malformed):
        record.decode(GOLDEN_4[:cut])


# magic, size, crc and body, lengths: every byte that the format can check
@pytest.mark.parametrize("at", [*range(12), 28, 84, 90, 93, 95, 96])
def test_a_changed_byte_is_malformed(at: int) -> None:
    changed = bytearray(GOLDEN_4)
    changed[at] ^= 0x40
    with pytest.raises(Malformed):
        record.decode(bytes(changed), physical_offset=0)


@given(tags=random_store.names, at=st.integers(0, 1 << 40))
def test_a_unit_holds_the_hash_of_the_tags_sign_extended(tags: str, at: int) -> None:
    code = java_hash(tags)
    assert -(1 << 31) <= code < 1 << 31
    assert struct.unpack(">qiq", Unit(at, 100, code).encode()) == (at, 100, code)
