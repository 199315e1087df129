"""fastjson's dialect: what Java wrote is read, and what is written are Java's bytes."""

from __future__ import annotations

import json
import struct
import tracemalloc
from contextlib import suppress
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqfast.errors import ArgumentError, RemotingProtocolError
from rmqfast.message import MessageQueue
from rmqfast.remoting.fastjson import decode, encode, java_double
from rmqfast.remoting.hash_map import java_hash
from tests.wire_traffic import Exchange, exchanges


class Model(Enum):
    CLUSTERING = 1


#: Members that are a `HashMap` in Java, whose order is any.
HASH_MAPS = {"table", "subscriptionTable", "properties"}
#: Answered with real JSON to clients from 4.9.4 on.
STANDARD = {"GET_ROUTEINFO_BY_TOPIC"}


def json_bodies(version: str) -> list[tuple[Exchange, bytes]]:
    return [
        (exchange, body)
        for exchange in exchanges(version)
        for body in (exchange.request_body, exchange.response_body)
        if body[:1] in {b"{", b"["}
    ]


@pytest.mark.parametrize(("version", "bodies"), [("4.9.4", 181), ("5.3.3", 172)])
def test_each_recorded_body_is_read_and_written_again_as_the_same_text(version: str, bodies: int) -> None:
    recorded = json_bodies(version)
    assert len(recorded) == bodies
    for exchange, body in recorded:
        members = decode(body)
        # turned round, so that an order which is right was made
        written = encode(dict(reversed(members.items())), standard=exchange.name in STANDARD)
        if HASH_MAPS.isdisjoint(members):
            assert written == body, exchange
        else:
            assert (decode(written), len(written)) == (members, len(body)), exchange


def test_the_hash_of_a_text_is_java_s() -> None:
    wanted = {"*": 42, "订单": 1129459, "😀": 1772899, "polygenelubricants": 1 << 31, "": 0}
    assert {text: java_hash(text) for text in wanted} == wanted


@pytest.mark.parametrize(
    ("value", "standard", "text"),
    [
        ({"b": 1, "a": None, "A": [None, 1]}, False, '{"A":[null,1],"b":1}'),
        ({10: "a", 9: "b", -1: "c"}, False, '{-1:"c",9:"b",10:"a"}'),
        ({10: "a", 9: "b", -1: "c"}, True, '{"-1":"c","9":"b","10":"a"}'),
        (MessageQueue("t", "b", 3), False, '{"brokerName":"b","queueId":3,"topic":"t"}'),
        ({MessageQueue("t", "b", 3): 5}, False, '{{"brokerName":"b","queueId":3,"topic":"t"}:5}'),
        (Model.CLUSTERING, False, '"CLUSTERING"'),
        ((), False, "[]"),
        ({}, False, "{}"),
        ({"a": None}, False, "{}"),
        (True, False, "true"),
        ('\x00\x0b\b\t\n\f\r"\\/\x7f\x9f\xa0é\u2028', False,
         '"\\u0000\\u000B\\b\\t\\n\\f\\r\\"\\\\/\\u007F\\u009F\xa0é\\u2028"'),
        ("/\xa0中😀", True, '"\\/\\u00A0\\u4E2D\\uD83D\\uDE00"'),
        ("\ud800", False, '"?"'),
    ],
)  # fmt: skip
def test_values_are_written_as_fastjson_writes_them(value: object, standard: bool, text: str) -> None:
    assert encode(value, standard=standard).decode() == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (-1.5, "-1.5"), (0.1, "0.1"), (0.001, "0.001"),
        (0.0009999, "9.999E-4"), (1e-5, "1.0E-5"), (9999999.0, "9999999.0"), (1e7, "1.0E7"), (1.5e7, "1.5E7"),
        (123456789.125, "1.23456789125E8"), (1e21, "1.0E21"), (1.2345678901234567e19, "1.2345678901234567E19"),
        (1.7976931348623157e308, "1.7976931348623157E308"), (-1e10, "-1.0E10"), (1e-300, "1.0E-300"),
        (float("nan"), "null"), (float("inf"), "null"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_java_prints_them(number: float, text: str) -> None:
    assert java_double(number) == text
    assert encode([number]).decode() == f"[{text}]"


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(FLOATS)
def test_a_number_is_read_back_to_the_last_bit(number: float) -> None:
    assert struct.pack(">d", decode(encode(number))) == struct.pack(">d", number)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
KEYS = st.one_of(
    TEXTS.filter(lambda text: not text.startswith("{")),
    LONGS,
    st.builds(MessageQueue, TEXTS, TEXTS, st.integers(0, 9)),
)
VALUES = st.recursive(
    st.one_of(TEXTS, st.booleans(), LONGS, FLOATS),
    lambda inner: st.lists(st.one_of(inner, st.none()), max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert decode(encode(value)) == value


@given(VALUES)
def test_real_json_is_read_by_everybody_unless_a_queue_is_a_key(value: Any) -> None:
    text = encode(value, standard=True)
    assert text.isascii()
    if not has_queue_keys(value):
        json.loads(text)


def has_queue_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return any(isinstance(key, MessageQueue) or has_queue_keys(item) for key, item in value.items())
    return isinstance(value, list) and any(has_queue_keys(item) for item in value)


@given(VALUES, st.data())
def test_a_damaged_text_is_read_or_refused(value: Any, data: st.DataObject) -> None:
    damaged = bytearray(encode(value))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.sampled_from(b'{}[]",:0-.e\\u\xff\x00 t'))
    with suppress(RemotingProtocolError):
        decode(bytes(damaged))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        (" \n", None),
        ("null", None),
        ('{ 0 : "x" , "1" : 2 }', {0: "x", "1": 2}),
        ('{"a\nb":"c\td"}', {"a\nb": "c\td"}),
        ('{"x":1,0:"\\ud83d\\ude00"}', {"x": 1, 0: "😀"}),
        ('"\\ud800"', "\ufffd"),
        ('{"{\\"brokerName\\":\\"b\\",\\"queueId\\":1,\\"topic\\":\\"t\\"}":5}', {MessageQueue("t", "b", 1): 5}),
        ('{"{no queue":5}', {"{no queue": 5}),
        ('{{"topic":"t","queueId":1,"brokerName":"b"}:{0:1}}', {MessageQueue("t", "b", 1): {0: 1}}),
        ('{"a":{"$ref":"$.consumerTable.cid"},0:1}', {"a": {"$ref": "$.consumerTable.cid"}, 0: 1}),
        ('{"a":1,}', {"a": 1}),
        ("[1,{0:2,},]", [1, {0: 2}]),
        ('{"@type":"java.lang.Runtime"}', {"@type": "java.lang.Runtime"}),
    ],
)
def test_what_java_reads_is_read(text: str, value: object) -> None:
    assert decode(text.encode()) == value


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    assert decode(b'{"a":"\xff"}') == {"a": "\ufffd"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":1', "no json at character 6: expected ',', got the end"),
        ("{0:1}x", "no json at character 5: expected the end, got 'x'"),
        ("{0 1}", "no json at character 3: expected ':', got '1}'"),
        ('{"a":TRUE}', "no json at character 5: expected a value, got 'TRUE}'"),
        ('{"a":NaN}', "no json at character 5: expected a value, got 'NaN}'"),
        ("[1e999]", "no json at character 1: expected a number that a double holds, got '1e999]'"),
        ("[" + "9" * 5000 + "]", "no json at character 1: expected a value"),
        ('{"a', "no json at character 1: expected a text that ends"),
        ("{1.5:2}", "no json at character 1: expected a key"),
        ('{{"topic":"t"}:1}', "no json at character 1: expected a queue as key"),
        ('{{"topic":"t","queueId":true,"brokerName":"b"}:1}', "no json at character 1: expected a queue as key"),
    ],
)
def test_what_is_no_json_is_refused_with_its_position(text: str, message: str) -> None:
    with pytest.raises(RemotingProtocolError) as error:
        decode(text.encode())
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("opening", ["[", '{"a":', "{0:", '{"a":[', "{{"])
def test_a_bomb_of_nesting_is_refused_in_little_memory(opening: str) -> None:
    bomb = (opening * 200_000).encode()
    tracemalloc.start()
    with pytest.raises(RemotingProtocolError, match=r"no json at character"):
        decode(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(bomb)


@pytest.mark.parametrize("value", [b"[],", b"{},", b"0,", b'"",', b"1.5,"])
def test_a_bomb_of_values_is_refused_in_little_memory(value: bytes) -> None:
    bomb = b"[" + value * 2_000_000 + b"0]"
    tracemalloc.start()
    with pytest.raises(RemotingProtocolError, match="no json of more than 2000000 values"):
        decode(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(bomb)


def test_64_objects_may_stand_in_one_another() -> None:
    for opening, closing in [("[", "]"), ('{"a":', "}"), ("{0:", "}")]:
        decode((opening * 64 + "1" + closing * 64).encode())
        for depth in (65, 66, 500):
            with pytest.raises(RemotingProtocolError, match="no more than 64 objects in one another"):
                decode((opening * depth + "1" + closing * depth).encode())


@pytest.mark.parametrize("value", [b"bytes", object(), {1.5: 1}, {None: 1}, {(): 1}, {True: 1}])
def test_what_has_no_json_is_an_argument_error(value: object) -> None:
    with pytest.raises(ArgumentError, match="no json"):
        encode(value)


def test_a_value_in_itself_is_an_argument_error() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ArgumentError, match="nested deeper than 64"):
        encode(value)
