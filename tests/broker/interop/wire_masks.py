"""Masks for recorded answers: values that every run makes anew, or that depend on requests not recorded."""

from __future__ import annotations

import json
import re
from typing import Any

from rmqfast.errors import RemotingProtocolError
from tests.unordered import unordered

from . import masks
from .frames import Frame
from .record_rows import record_rows

RECORDS = (11, 12, 33, 39, 361)  # answers and requests whose body is messages as they are stored
# Fields of a header whose value is made anew.
FIELDS = {
    "msgId": "offset ids: the port of the broker, and what was stored before",
    "offsetMsgId": "the same",
    "commitLogOffset": "where the message is, after what was not sent again",
    "indexLastUpdateTimestamp": "time",
    "indexLastUpdatePhyoffset": "as commitLogOffset",
    "version": "a data version: time and counter",
    "transactionId": "in a response, where it follows from the time",
}
# In a body of JSON, or of lines.
BODIES = (
    (re.compile(rb'"(lastUpdateTimestamp|lastTimestamp|timestamp|lastUpdateTime)":\d+'), rb'"\1":"<time>"'),
    (re.compile(rb'"clientAddr":"[^"]*"'), rb'"clientAddr":"<address>"'),
    (re.compile(rb'"consumeTps":[\d.E-]+'), rb'"consumeTps":"<figure>"'),
    # offsets of groups whose commits the recording has in part only
    (re.compile(rb'"consumerOffset":\d+'), rb'"consumerOffset":"<partly recorded>"'),
    (re.compile(rb'"stateVersion":\d+'), rb'"stateVersion":"<counter>"'),
    (re.compile(rb'"counter":\d+'), rb'"counter":"<counter>"'),
    # made when a transaction was asked about for the fifteenth time, after as many intervals
    (re.compile(rb'"TRANS_CHECK_MAX_TIME_TOPIC",'), b""),
)
# Properties of the broker that follow from where it runs.
LINES = re.compile(
    rb"(?m)^(storePath\w*|rocketmqHome|namesrvAddr|listenPort|haListenPort|brokerIP\d|aclFile\w*|\w*ThreadPoolNums?|\w*ThreadNums?"
    rb"|startAcceptSendRequestTimeStamp|brokerConfigPath|configBlackList)=.*$"
)
CONFIGURATION, RUNTIME, RUNNING = 26, 28, 307


def remark(frame: Frame) -> str | None:
    """The remark, without addresses and times."""
    text = frame.header.get("remark")
    return None if text is None else masks.text(text)


def body(code: int, data: bytes, brokers: tuple[str, ...]) -> Any:
    """A body as it is compared; `brokers` are the addresses that stand for the broker."""
    if code in RECORDS and data:
        return record_rows(data)
    if code == RUNTIME:
        return runtime(data)
    if code == RUNNING:
        return data  # the client's own, handed on
    for address in brokers:
        data = data.replace(address.encode(), b"<broker>")
    if code == CONFIGURATION:
        values = dict(line.partition(b"=")[::2] for line in LINES.sub(rb"\1=<here>", data).splitlines())
        return {name: value for name, value in values.items() if name.decode() not in masks.INCOMPARABLE_KEYS}
    for pattern, instead in BODIES:
        data = pattern.sub(instead, data)
    try:
        return unordered(data)
    except RemotingProtocolError:
        return data


def fields(frame: Frame) -> dict[str, str]:
    """The fields of a header; of what is made anew only that it is there, and how many."""
    return {name: f"<{value.count(',')}>" if name in FIELDS else value for name, value in frame.fields.items()}


def runtime(body: bytes) -> dict[str, str]:
    """A broker's runtime information: its names, and the values that are not numbers.

    Which delay levels have delivered something depends on what was sent back; a path is the name of one entry.
    """
    table = json.loads(body)["table"]
    names = {name: name.partition("_/")[0] for name in table if not name.startswith("scheduleMessageOffset_")}
    return {
        short: "<figure>" if re.search(r"\d|^null$|^\s*$", table[name]) else table[name]
        for name, short in names.items()
    }
