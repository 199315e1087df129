"""What is sent, compared with what the official Java client sent."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from rmqfast import Message
from rmqfast._native import MessageEncoder, Outgoing
from rmqfast.client.instance.ids import month_bounds, unique_ids
from tests.wire_traffic import Exchange, exchanges

SENDS = [exchange for exchange in exchanges("4.9.4") if exchange.code in {310, 320}]


def encoder_of(group: str, *, compress_over: int = 4096, instance_id: str | None = None) -> MessageEncoder:
    return MessageEncoder(
        group,
        unique_ids(),
        default_topic="TBW102",
        default_topic_queue_nums=4,
        compress_over=compress_over,
        instance_id=instance_id,
        is_unit_mode=False,
    )


def outgoing_of(message: Message) -> Outgoing:
    return encoder_of("g").encode(message, message.topic)


def message_of(topic: str, flag: int, properties: str, body: bytes, born_timestamp: int | None) -> Message:
    """The message that an application gave to the Java client; the id is kept."""
    pairs = dict(pair.split("\x01") for pair in properties.split("\x02") if pair)
    for name in ("TRAN_MSG", "PGROUP"):
        pairs.pop(name, None)
    return Message(
        topic,
        body,
        tags=pairs.pop("TAGS", None),
        keys=pairs.pop("KEYS").split(" ") if "KEYS" in pairs else None,
        wait_store=pairs.pop("WAIT") == "true",
        delay_level=int(pairs.pop("DELAY", "0")),
        properties=pairs,
        flag=flag,
        born_timestamp=born_timestamp,
    )


@pytest.mark.parametrize("exchange", [each for each in SENDS if each.code == 310], ids=str)
def test_a_send_has_the_fields_and_the_body_of_the_java_client(exchange: Exchange) -> None:
    fields: dict[str, Any] = exchange.request_header["extFields"]
    encoder = encoder_of(fields["a"])
    message = message_of(fields["b"], int(fields["h"]), fields["i"], exchange.request_body, int(fields["g"]))
    if "TRAN_MSG" in fields["i"]:
        outgoing = encoder.encode(message, message.topic, [("TRAN_MSG", "true"), ("PGROUP", fields["a"])], 4)
    else:
        outgoing = encoder.encode(message, message.topic)
    assert outgoing.fields(int(fields["e"])) == fields
    assert (outgoing.code, outgoing.body) == (310, exchange.request_body)


def test_a_batch_has_the_fields_and_the_body_of_the_java_client() -> None:
    (exchange,) = [each for each in SENDS if each.code == 320]
    fields: dict[str, Any] = exchange.request_header["extFields"]
    messages, rest = [], exchange.request_body
    while rest:
        size, body_size = int.from_bytes(rest[:4], "big"), int.from_bytes(rest[16:20], "big")
        body, properties = rest[20 : 20 + body_size], rest[22 + body_size : size].decode()
        flag = int.from_bytes(rest[12:16], "big")
        messages.append(message_of(fields["b"], flag, properties, body, None))
        rest = rest[size:]
    assert len(messages) > 2
    outgoing = encoder_of(fields["a"]).encode_batch(messages, fields["b"], wait_store=True)
    assert (outgoing.code, outgoing.body) == (320, exchange.request_body)
    assert {**outgoing.fields(int(fields["e"])), "g": fields["g"]} == fields
    assert outgoing.unique_id == ",".join(message.properties["UNIQ_KEY"] for message in messages)


@pytest.mark.parametrize(
    ("timer", "written"),
    [
        ({"delay": 1.5}, "TIMER_DELAY_MS=1500;KEYS=k1;WAIT=true;TAGS=TagA"),
        (
            {"deliver_at": datetime.fromtimestamp(1_795_000_000.123, UTC)},
            "KEYS=k1;TIMER_DELIVER_MS=1795000000123;WAIT=true;TAGS=TagA",
        ),
    ],
)
def test_a_timer_has_the_properties_of_the_java_client_of_5_3_3(timer: dict[str, Any], written: str) -> None:
    """What `messageProperties2String` makes of `setDelayTimeMs(1500)`, `setDeliverTimeMs(1795000000123)`."""
    outgoing = outgoing_of(Message("T", b"x", "TagA", "k1", **timer))
    pairs = [pair.replace("\x01", "=") for pair in outgoing.properties.split("\x02")]
    assert ";".join(pair for pair in pairs if pair and not pair.startswith("UNIQ_KEY")) == written


def test_an_id_is_made_that_counts_up_and_begins_with_this_process() -> None:
    ids = [outgoing_of(Message("t", b"x")).unique_id for _ in range(3)]
    assert all(re.fullmatch("[0-9A-F]{32}|[0-9A-F]{56}", each) for each in ids)
    assert len({each[:-12] for each in ids}) == 1
    numbers = [int(each[-4:], 16) for each in ids]
    assert [(number - numbers[0]) % 65536 for number in numbers] == [0, 1, 2]
    outgoing = outgoing_of(Message("t", b"x"))
    assert f"UNIQ_KEY\x01{outgoing.unique_id}" in outgoing.properties


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("utc")
def test_a_month_begins_on_its_first_day_where_this_machine_is() -> None:
    assert month_bounds(1_795_319_938_000) == (1_793_491_200_000, 1_796_083_200_000)
    assert month_bounds(1_798_675_200_000)[1] == 1_798_761_600_000  # a year ends


def test_a_body_of_4096_bytes_or_more_is_compressed_and_flagged() -> None:
    small, large = outgoing_of(Message("t", b"x" * 4095)), outgoing_of(Message("t", b"x" * 4096))
    assert (small.sys_flag, len(small)) == (0, 4095)
    assert (large.sys_flag, large.body[:2]) == (769, b"\x78\x5e")
    assert len(large) < 100


def test_a_namespace_is_told_as_the_instance() -> None:
    outgoing = encoder_of("ns%g", instance_id="ns").encode(Message("t", b"x"), "ns%t")
    assert outgoing.fields(2)["b"] == outgoing.topic == "ns%t"
    assert "INSTANCE_ID\x01ns" in outgoing.properties


def test_a_message_for_a_retry_topic_says_how_often_it_was_consumed() -> None:
    properties = {"RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "16"}
    fields = encoder_of("g").encode(Message("%RETRY%g", b"x", properties=properties), "%RETRY%g").fields(0)
    assert (fields["j"], fields["l"]) == ("3", "16")
    plain = encoder_of("g").encode(Message("t", b"x", properties=properties), "t").fields(0)
    assert plain["j"] == "0"
    assert "l" not in plain


def test_a_reply_goes_out_by_a_code_of_its_own_and_a_batch_of_replies_does_not() -> None:
    """As `MQClientAPIImpl.sendMessage`: a batch has none of its messages' properties."""
    reply = Message("DefaultCluster_REPLY_TOPIC", b"yes", properties={"MSG_TYPE": "reply"})
    assert outgoing_of(reply).code == 325
    assert outgoing_of(Message("t", b"x", properties={"MSG_TYPE": "normal"})).code == 310
    assert encoder_of("g").encode_batch([reply], reply.topic, wait_store=True).code == 320
