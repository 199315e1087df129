"""Whatever administrators send: an answer of RocketMQ's codes, and never a defect."""

from __future__ import annotations

import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rmqfast.remoting import ResponseCode
from tests.broker.control_plane import ControlPlane

FIELDS = [
    *("topic", "defaultTopic", "readQueueNums", "writeQueueNums", "perm", "topicFilterType", "topicSysFlag", "order"),
    *("groupName", "group", "consumerGroup", "removeOffset", "isOrder", "statsName", "statsKey", "key", "maxNum"),
    *("beginTimestamp", "endTimestamp", "queueId", "index", "count", "timestamp", "offset", "_UNIQUE_KEY_QUERY"),
]
VALUES = st.one_of(
    st.sampled_from(["", "../x", "TBW102", "BenchmarkTest", "TOOLS_CONSUMER", "true", "SINGLE_TAG", "0", "1", "-1"]),
    st.sampled_from(["2147483647", "-2147483648", "9223372036854775807", "-9223372036854775808", "1e3", "\0", "\n"]),
    st.integers().map(str),
    st.text(max_size=20),
)
JSON = st.recursive(
    st.sampled_from(["null", "true", "1", "-5", "1.5", '"x"', '""', '"../x"', "9999999999999999999"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
        st.dictionaries(st.sampled_from(["groupName", "retryQueueNums", "brokerId", "consumeEnable", "x"]), inner).map(
            lambda members: "{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}"
        ),
    ),
    max_leaves=8,
)
PROPERTIES = st.dictionaries(
    st.sampled_from(["brokerPermission", "autoCreateTopicEnable", "brokerName", "transactionTimeOut", "x"]), VALUES
).map(lambda members: "\n".join(f"{name}={value}" for name, value in members.items()))
BODIES = st.one_of(
    st.binary(max_size=60), JSON.map(str.encode), PROPERTIES.map(lambda text: text.encode("utf-8", "replace"))
)
ANSWERS = {
    ResponseCode.SUCCESS,
    ResponseCode.SYSTEM_ERROR,
    ResponseCode.TOPIC_NOT_EXIST,
    ResponseCode.QUERY_NOT_FOUND,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
}


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), fields=st.dictionaries(st.sampled_from(FIELDS), VALUES), body=BODIES)
def test_every_request_has_an_answer(
    still: ControlPlane, caplog: pytest.LogCaptureFixture, data: st.DataObject, fields: dict[str, str], body: bytes
) -> None:
    code = data.draw(st.sampled_from([200, 25] * 5 + sorted(still.processors)))  # bodies are read by these two
    caplog.clear()
    answer = still.answer(code, fields, body)
    assert answer.code in ANSWERS, (code, fields, body, answer)
    defects = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert defects == [], (code, fields, body)


@pytest.mark.parametrize("size", [127, 128, 1000, 60_000])
def test_long_texts_are_answered(still: ControlPlane, size: int) -> None:
    fields = {"topic": "a" * size, "group": "a" * size, "groupName": "a" * size, "consumerGroup": "a" * size}
    for code in (202, 208, 215, 300, 303, 207, 351, 352):
        assert still.answer(code, fields).code in ANSWERS
