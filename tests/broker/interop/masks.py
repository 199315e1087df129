"""Masks for values that differ between runs on RocketMQ and on rmqfast: times, addresses, ids."""

from __future__ import annotations

import re
from typing import Any

from rmqfast.broker.configuration.config_keys import JVM_KEYS, UNUSED_KEYS

from .cluster import Cluster

# Properties of a message whose value is made anew in every run.
PROPERTIES = {
    "UNIQ_KEY": "made by the client",
    "ORIGIN_MESSAGE_ID": "offset id or unique key of the first delivery",
    "__transactionId__": "unique key of the half message",
    "CONSUME_START_TIME": "time of the client",
    "MAX_OFFSET": "end of the queue at the time of the pull",
    "CORRELATION_ID": "made by the asking client",
    "REPLY_TO_CLIENT": "client id: address and process",
    "REPLY_MESSAGE_ARRIVE_TIME": "time of the client",
    "ARRIVE_TIME": "time of the client",
    "SEND_MESSAGE_BACK_TIME": "time",
    "CHECK_IMMUNITY_TIME_IN_SECONDS": "time",
}
# In texts: errors name addresses, ids and times.
TEXTS = (
    (re.compile(r"127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"\b[0-9A-F]{56}\b|\b[0-9A-F]{32}\b"), "<id>"),
    (re.compile(r"(?<!#)\b1[789]\d{11}\b"), "<ms>"),  # a client id ends in # and the uptime in ns
    (re.compile(r"20\d\d-\d\d-\d\d[ ,T]\d\d:\d\d:\d\d([,.]\d{3})?"), "<time>"),
    (re.compile(r"cost \d+ ?ms"), "cost <ms>"),
)


def row(value: Any, cluster: Cluster) -> Any:
    """A row of a scenario with its volatile values masked."""
    if isinstance(value, dict):
        return {key: "<masked>" if key in PROPERTIES else row(one, cluster) for key, one in value.items()}
    if isinstance(value, list):
        return [row(one, cluster) for one in value]
    return text(value) if isinstance(value, str) else value


def text(value: str) -> str:
    """A text with addresses, ids and times masked."""
    for pattern, instead in TEXTS:
        value = pattern.sub(instead, value)
    return value


# In what mqadmin prints, beside the texts above.
PRINTED = (
    (re.compile(r"^(\S+\s+\d+\s+(?:V4_9_4\s+PUSH\s+CLUSTERING|OFFLINE)\s+)\d+(\s+\d+)$"), r"\1<tps>\2"),
    (re.compile(r"^(broker-a\s+)\d+(\s+SEND_OK)"), r"\1<queue>\2"),  # the first send goes to any queue
    (re.compile(r"^(broker-a\s+\d+\s+true\s+)\d+$"), r"\1<ms>"),
    (re.compile(r"(?<!#)\b20\d{12}\b"), "<time>"),
    (re.compile(r"\d{1,3}(\.\d{1,3}){3}@\d+(#\d+)?(@STREAM)?|[\w.:-]+@\d+#\d+(@STREAM)?"), "<client>"),
    (re.compile(r"(?<=\w)@[0-9a-f]{1,8}\b|\$\$Lambda\S*"), "<object>"),
    (re.compile(r"\b\d{17,}\b"), "<digits>"),
    (re.compile(r"/[\w./-]*/(?:rmq|mq|tmp|store)[\w./-]*"), "<path>"),
    (re.compile(r"\b\d+(\.\d+)?(ms|s)\b|(?<=spentTimeMills=)\d+"), "<duration>"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b(?!:)"), "<host>"),
    (re.compile(r"(?<![\w.])\d+\.\d+(?![\w.])"), "<figure>"),
)


def printed(value: str) -> str:
    """A line of mqadmin's with client ids, paths and durations masked."""
    for pattern, instead in PRINTED:
        value = pattern.sub(instead, value)
    return value


# What a broker of 5.x does in another way than 4.9.4, which ours follows: rows of the 5.3.3 client were recorded with
# one, as it asks a broker what 4.9.4 does not know (351).
PROPERTIES_OF_5 = {
    "MSG_REGION": "5.x stores it with each message",
    "TRACE_ON": "5.x stores it with each message",
    "WAIT": "5.x leaves it in what it stores",
    "DELAY": "5.x takes the delay of a dead letter away; 4.9.4 means to, but delays it",
    "REAL_TOPIC": "as DELAY",
    "REAL_QID": "as DELAY",
}
#: Offsets by time: 4.9.4 looks for the nearest message, 5.x for the first one that is not older.
OFFSET_BY_TIME = "late"


def between_versions(value: Any) -> Any:
    """A row without what brokers of 4.9.4 and 5.x do differently."""
    if isinstance(value, dict):
        left = {key: one for key, one in value.items() if key not in PROPERTIES_OF_5 and key != OFFSET_BY_TIME}
        return {key: between_versions(one) for key, one in left.items()}
    return [between_versions(one) for one in value] if isinstance(value, list) else value


# The tool's producer begins at a queue by chance, and so the messages of one command stand in this queue or that.
BY_CHANCE = "consumeMessage -t adm_order"
PLACE = re.compile(r"\b(queueId|queueOffset|offset|commitLogOffset|MAX_OFFSET)=\d+")
# Keys that share a bucket of a Java map stand in an order that its growing gave them.
CONFIGURATION = "getBrokerConfig"
# Ours shows only keys that it uses, and the recorded brokers had limits of the disk from the JVM alone.
INCOMPARABLE_KEYS = UNUSED_KEYS | JVM_KEYS
# A young broker counts the last minute: what is left of that depends on when it is asked.
STATISTICS = "statsAll"
LAST_MINUTE = re.compile(r"\d+ \d+$", re.MULTILINE)
# Producers inside of consumers and tools that have left may be there still.
PRODUCERS, INNER = "producer -b", "CLIENT_INNER_PRODUCER"


def comparable(line: str, text: str) -> tuple[str, object]:
    """A command and what it printed, without what may differ between two runs on one broker."""
    if line.startswith(CONFIGURATION):
        return line, sorted(one for one in text.splitlines() if one.partition("=")[0].strip() not in INCOMPARABLE_KEYS)
    if line.startswith(PRODUCERS):
        return line, [one for one in text.splitlines() if INNER not in one]
    if line.startswith(STATISTICS):
        return line, sorted(LAST_MINUTE.sub("<figure> <figure>", text).splitlines())
    if line == BY_CHANCE:
        messages = (PLACE.sub(r"\1=<figure>", one) for one in text.splitlines() if one.startswith("MSGID"))
        return line, sorted(messages)
    # lists of topics, groups and rows come in the order of Java's hash tables
    return line, sorted(one.rstrip(",") for one in text.splitlines())
