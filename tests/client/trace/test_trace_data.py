"""Traces as texts, as the class of 4.9.4 writes and reads them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import pytest

from rmqfast.client.trace import (
    ConsumeReturnType,
    MessageType,
    TraceBean,
    TraceContext,
    TraceType,
    decode_trace,
    encode_trace,
    trace_views,
)

from .recorded import Row, answered, contexts, recorded

ROWS = recorded()
ENCODED = [row for row in ROWS if "text" not in row]
DECODED = [row for row in ROWS if "text" in row]


#: What a context says, by Java's names and those here.
CONTEXT = {
    "timeStamp": "timestamp",
    "regionId": "region_id",
    "groupName": "group_name",
    "costTime": "cost_time",
    "success": "is_success",
    "requestId": "request_id",
    "contextCode": "context_code",
}
#: What a bean says.
BEAN = {
    "topic": "topic",
    "msgId": "msg_id",
    "offsetMsgId": "offset_msg_id",
    "tags": "tags",
    "keys": "keys",
    "storeHost": "store_host",
    "retryTimes": "retry_times",
    "bodyLength": "body_length",
    "transactionId": "transaction_id",
    "transactionState": "transaction_state",
    "fromTransactionCheck": "from_transaction_check",
}


def context_of(row: Row) -> TraceContext:
    said = {name: row[java] for java, name in CONTEXT.items()}
    beans = [bean_of(bean) for bean in row["beans"]]
    return TraceContext(trace_type=TraceType(row["traceType"]), beans=beans, **said)


def bean_of(row: Row) -> TraceBean:
    said = {name: row[java] for java, name in BEAN.items()}
    return TraceBean(msg_type=MessageType(row["msgType"]), **said)


def told(context: TraceContext) -> Row:
    """All that a context says, by Java's names."""
    (bean,) = context.beans
    return {
        "traceType": context.trace_type.value,
        "msgType": bean.msg_type and bean.msg_type.value,
        **{java: getattr(context, name) for java, name in CONTEXT.items()},
        **{java: getattr(bean, name) for java, name in BEAN.items()},
    }


def check_encoded(row: Row) -> None:
    data, java = encode_trace(context_of(row)), row["answer"]
    assert data.text == java["data"]
    single = {each for bean in row["beans"] for each in bean["msgId"].split(",")}
    assert data.keys == (set(java["keys"]) - {""}) | single, "of a batch each id, too"


def test_contexts_are_texts_byte_for_byte_and_have_the_keys_of_4_9_4() -> None:
    assert {row["traceType"] for row in ENCODED} == {"Pub", "SubBefore", "SubAfter", "EndTransaction"}
    for row in ENCODED:
        check_encoded(row)


@pytest.mark.parametrize("row", [row for row in DECODED if "contexts" in row["answer"]])
def test_texts_say_what_4_9_4_reads_in_them(row: Row) -> None:
    found = [told(context) for context in decode_trace(row["text"])]
    expected = row["answer"]["contexts"]
    assert len(found) == len(expected)
    for mine, java in zip(found, expected, strict=True):
        assert {name: mine[name] for name in java} == java


@pytest.mark.parametrize("row", [row for row in DECODED if "thrown" in row["answer"]])
def test_where_4_9_4_fails_a_trace_is_left_out_and_logged(row: Row, caplog: pytest.LogCaptureFixture) -> None:
    sound = ENCODED[0]["answer"]["data"]
    with caplog.at_level(logging.WARNING):
        found = decode_trace(f"{sound}{row['text']}\x02{sound}")
    assert found == 2 * decode_trace(sound)
    assert "a trace that cannot be read is left out" in caplog.text


def test_a_trace_without_a_message_is_refused() -> None:
    with pytest.raises(ValueError, match="expected messages in a trace of kind Pub, got none"):
        encode_trace(TraceContext(trace_type=TraceType.PUB))
    with pytest.raises(ValueError, match="expected the kind of the message i, got none"):
        encode_trace(TraceContext(trace_type=TraceType.PUB, beans=[TraceBean(msg_id="i")]))


@dataclass
class Stored:
    body: bytes
    born_host: str = "10.0.0.7:5555"


def test_views_tell_the_way_of_one_message_in_order() -> None:
    sent = TraceContext(
        trace_type=TraceType.PUB,
        beans=[TraceBean(msg_id="a,b", topic="t", msg_type=MessageType.NORMAL, tags=None)],
        timestamp=1,
        group_name="p",
        region_id=None,
    )
    bean = TraceBean(msg_id="b", keys="k", retry_times=2)
    other = TraceBean(msg_id="c")
    before = TraceContext(
        trace_type=TraceType.SUB_BEFORE, beans=[bean, other], timestamp=5, group_name="g", request_id="q"
    )
    after = TraceContext(
        trace_type=TraceType.SUB_AFTER,
        beans=[bean, other],
        timestamp=5,
        request_id="q",
        cost_time=7,
        is_success=False,
        context_code=4,
    )
    messages = [
        Stored((encode_trace(after).text + encode_trace(before).text).encode(), "[::1]:80"),
        Stored(encode_trace(sent).text.encode()),
        Stored(b""),
    ]
    pub, begun, ended = trace_views("b", messages)
    assert (pub.trace_type, pub.message_id, pub.group, pub.client_host, pub.status) == (
        TraceType.PUB,
        "b",
        "p",
        "10.0.0.7",
        "success",
    )
    assert (pub.tags, pub.region_id, pub.topic, pub.message_type) == (None, None, "t", MessageType.NORMAL)
    assert (begun.trace_type, begun.group, begun.retry_times, begun.status) == (TraceType.SUB_BEFORE, "g", 2, None)
    assert (ended.trace_type, ended.group, ended.client_host, ended.cost_time) == (TraceType.SUB_AFTER, "g", "::1", 7)
    assert (ended.status, ended.return_type, ended.request_id) == ("failed", ConsumeReturnType.FAILED, "q")
    assert [view.trace_type for view in trace_views("c", messages)] == [TraceType.SUB_BEFORE, TraceType.SUB_AFTER]
    assert [view.message_id for view in trace_views("a,b", messages)] == ["a,b"]
    assert trace_views("x", messages) == []


@pytest.mark.long
def test_other_contexts_are_as_4_9_4_has_them() -> None:
    rows: list[Any] = answered(list(contexts(7, 2000)))
    for row in rows:
        check_encoded(row)
