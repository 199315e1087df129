"""Requests of an account that touch what it has no right to, in fields that a broker of 4.9.4 does not look at."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from rmqfast.remoting import RemotingClient, RequestCode, Response, ResponseCode
from rmqfast.remoting.credentials import Credentials

REFUSED = "AclException: No default permission for "
ADMIN, STRANGER = "administrator", "stranger"
#: The stranger may do as it likes with topics that have no entry, and receive as one group.
ACCOUNTS = """
accounts:
- {accessKey: administrator, secretKey: administrator, admin: true}
- accessKey: stranger
  secretKey: stranger
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: DENY
  topicPerms: [mine=PUB|SUB, secret=DENY]
  groupPerms: [own=SUB]
"""
SEND, SEND_V2, BATCH = RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE
REPLY, REPLY_V2 = RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2
_NAMES = (
    *("producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag"),
    *("properties", "reconsumeTimes", "unitMode", "maxReconsumeTimes", "batch"),
)
Fields = Mapping[str, str]


def sent(code: int, topic: str, properties: str = "", *, times: int = 0, group: str = "own") -> dict[str, str]:
    """The header fields of a send."""
    values = (
        *(group, topic, "TBW102", "4", "0", "0", "1700000000000", "0", properties),
        *(str(times), "false", "16", "false"),
    )
    return dict(zip(_NAMES if code in (SEND, REPLY) else "abcdefghijklm", values, strict=True))


def batch(properties: str) -> bytes:
    """The body of a batch of one message."""
    text = properties.encode()
    return struct.pack(">5i", 23 + len(text), 0, 0, 0, 1) + b"x" + struct.pack(">h", len(text)) + text


def dispatched(*queues: str) -> str:
    """The property by which a message is listed in further queues."""
    return f"INNER_MULTI_DISPATCH\1{','.join(queues)}\2"


def pulled(topic: str) -> dict[str, str]:
    """The header fields of a pull as the stranger's group."""
    return {
        "consumerGroup": "own", "topic": topic, "queueId": "0", "queueOffset": "0", "maxMsgNums": "1", "sysFlag": "4",
        "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0",
        "expressionType": "TAG",
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: its code, header fields and body."""

    name: str
    code: int
    fields: Fields
    body: bytes = b"x"


class House:
    """A broker with topics and groups of two owners, and messages that the stranger may not have."""

    def __init__(self, address: str) -> None:
        self.client = RemotingClient(address)
        for topic in ("mine", "secret"):
            self.make_topic(topic)
        for group in ("own", "other"):
            body = json.dumps({"groupName": group}).encode()
            self.ask(ADMIN, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)
        # their topics are there before somebody looks
        for topic in ("%RETRY%other", "%RETRY%own", "%DLQ%other"):
            self.ask(ADMIN, SEND_V2, sent(SEND_V2, topic, group="other"), b"top secret")
        self.message = self.offset_of(self.ask(ADMIN, SEND_V2, sent(SEND_V2, "secret"), b"top secret"))
        half = self.ask(ADMIN, SEND_V2, sent(SEND_V2, "secret", "TRAN_MSG\1true\2PGROUP\1own\2"), b"top secret")
        self.half, self.half_number = self.offset_of(half), (half.ext_fields or {})["queueOffset"]
        self.ask(ADMIN, SEND_V2, sent(SEND_V2, "secret", "DELAY\x0118\2"), b"top secret")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def make_topic(self, name: str) -> None:
        fields = {"topic": name, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6"}
        self.ask(ADMIN, RequestCode.UPDATE_AND_CREATE_TOPIC, fields | {"topicFilterType": "SINGLE_TAG"})

    def ask(self, who: str, code: int, fields: Fields, body: bytes = b"") -> Response:
        return self.client.request(code, Credentials(who, who).signed_fields(fields, body), body)

    @staticmethod
    def offset_of(answer: Response) -> int:
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return int((answer.ext_fields or {})["msgId"][16:], 16)

    def counts(self) -> dict[str, str]:
        """How many messages the queues have that are not the stranger's."""
        places = [{"topic": topic, "queueId": "0"} for topic in ("secret", "%RETRY%other", "%DLQ%other")]
        answers = [self.ask(ADMIN, RequestCode.GET_MAX_OFFSET, place).ext_fields or {} for place in places]
        return {place["topic"]: answer["offset"] for place, answer in zip(places, answers, strict=True)}

    def trespasses(self) -> Iterator[Asked]:
        """Requests that touch more than the stranger has a right to."""
        for code in (SEND, SEND_V2):
            yield Asked("retries of others", code, sent(code, "%RETRY%other"))
            yield Asked("dead letters of others, by their retries", code, sent(code, "%RETRY%other", times=99))
            yield Asked("dead letters of others", code, sent(code, "%DLQ%other"))
            yield Asked("a further queue", code, sent(code, "mine", dispatched("%LMQ%own", "secret")))
            yield Asked("a further queue behind a trace", code, sent(code, "RMQ_SYS_TRACE_TOPIC", dispatched("secret")))
        yield Asked("a batch to a further queue", BATCH, sent(BATCH, "mine", dispatched("secret")), batch(""))
        yield Asked("a batch, of which one", BATCH, sent(BATCH, "mine"), batch("a\1b\2") + batch(dispatched("secret")))
        yield Asked("a batch to another topic", BATCH, sent(BATCH, "secret"), batch(""))
        for code in (REPLY, REPLY_V2):
            yield Asked("a reply to another topic", code, sent(code, "secret"))
            yield Asked("a reply to retries of others", code, sent(code, "%RETRY%other"))
        back = {"group": "own", "delayLevel": "-1", "originMsgId": "x", "originTopic": "mine", "unitMode": "false"}
        end = {"producerGroup": "own", "tranStateTableOffset": self.half_number, "commitOrRollback": "8"}
        half = {"commitLogOffset": str(self.half), "fromTransactionCheck": "false", "msgId": "x", "transactionId": "x"}
        yield Asked(
            "a message sent back", RequestCode.CONSUMER_SEND_MSG_BACK, back | {"offset": str(self.message)}, b""
        )
        yield Asked(
            "a half message sent back", RequestCode.CONSUMER_SEND_MSG_BACK, back | {"offset": str(self.half)}, b""
        )
        yield Asked("a transaction of others", RequestCode.END_TRANSACTION, end | half, b"")
        for topic in ("%DLQ%other", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC"):
            yield Asked(f"a pull of {topic}", RequestCode.PULL_MESSAGE, pulled(topic), b"")
