"""Bodies as clients in other languages write them, and what RocketMQ's classes read in them.

`python -m tests.remoting.fastjson_bodies` asks the classes of 4.9.4 anew; needs Java.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.interop.rocketmq import java

GOLDEN = Path(__file__).parents[1] / "golden" / "remoting" / "bodies-4.9.4.jsonl.gz"
#: The version of a subscription that has none: now, so it is left out of what is kept.
_A_DAY = 86_400_000

Row = dict[str, Any]

# JSON that stands in the place of a member, whatever the member's type is.
_VALUES = (
    "null",
    "0",
    "1",
    "2",
    "5",
    "6",
    "-1",
    "1.9",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "true",
    "false",
    '"0"',
    '"1"',
    '"-5"',
    '"1,000"',
    '"1.5"',
    '"07"',
    '"+7"',
    '""',
    '"null"',
    '"NULL"',
    '"true"',
    '"TRUE"',
    '"Y"',
    '"n"',
    '"F"',
    '"t"',
    '"x"',
    '"CLUSTERING"',
    '"clustering"',
    '"CLUST-ERING"',
    '"CONSUME_PASSIVELY"',
    '"consume_actively"',
    '"CONSUME_POP"',
    '"CONSUME_FROM_FIRST_OFFSET"',
    "[]",
    "{}",
    '["a"]',
    '{"a":1}',
    '[1,"b",null,true]',
    '["1","2,0",3.7]',
    '[{"groupName":"g"}]',
)
# fastjson takes one object for a list of them or not, depending on the order of the members.
_AS_LISTS = {"consumerDataSet", "subscriptionDataSet"}
_MEMBERS = {
    "HeartbeatData": {"clientID": '"c"', "producerDataSet": '[{"groupName":"p"}]', "consumerDataSet": "[]"},
    "ConsumerData": {
        "groupName": '"g"',
        "consumeType": '"CONSUME_PASSIVELY"',
        "messageModel": '"CLUSTERING"',
        "consumeFromWhere": '"CONSUME_FROM_FIRST_OFFSET"',
        "subscriptionDataSet": "[]",
        "unitMode": "true",
    },
    "SubscriptionData": {
        "topic": '"t"',
        "subString": '"a"',
        "tagsSet": '["a"]',
        "codeSet": "[97]",
        "subVersion": "5",
        "expressionType": '"TAG"',
        "classFilterMode": "false",
    },
    "LockBatchRequestBody": {
        "clientId": '"c"',
        "consumerGroup": '"g"',
        "mqSet": '[{"topic":"t","brokerName":"b","queueId":1}]',
    },
    "SubscriptionGroupConfig": {
        "groupName": '"g"',
        "consumeEnable": "true",
        "consumeFromMinEnable": "true",
        "consumeBroadcastEnable": "true",
        "notifyConsumerIdsChangedEnable": "true",
        "retryQueueNums": "1",
        "retryMaxTimes": "16",
        "brokerId": "0",
        "whichBrokerWhenConsumeSlowly": "1",
    },
}
# The same members under names that differ a little, and members that no class has.
_WHOLE = [
    (
        "LockBatchRequestBody",
        '{"clientId":1,"consumerGroup":"g","mqSet":[{"topic":"t","brokerName":"b","queueId":"3"}]}',
    ),
    ("LockBatchRequestBody", '{"clientId":"c","consumerGroup":"g","mqSet":{"topic":"t","brokerName":"b"}}'),
    ("HeartbeatData", '{"clientid":"c"}'),
    ("HeartbeatData", '{"client_id":"c"}'),
    ("HeartbeatData", '{"Client-ID":"c"}'),
    ("HeartbeatData", '{"clientID":"a","clientID":"b"}'),
    ("HeartbeatData", '{"clientID":"c",}'),
    ("HeartbeatData", r"""{'clientID':'c \"\'d"'}"""),
    ("HeartbeatData", '{clientID:"c"}'),
    ("HeartbeatData", '\ufeff{"clientID":"c"}'),
    ("HeartbeatData", '{"clientID":"a\nb"}'),
    ("HeartbeatData", '{"clientID":"c","unknown":{"a":[1,{"b":null}]},"heartbeatFingerprint":0,"isWithoutSub":false}'),
    ("ConsumerData", '{"groupName":"g","isUnitMode":true}'),
    ("ConsumerData", '{"groupName":"g","is_unit_mode":1}'),
    ("ConsumerData", '{"GROUPNAME":"g","consume_type":1,"message-model":0}'),
    (
        "LockBatchRequestBody",
        '{"clientId":"c","consumer_group":"g","mq_set":[{"topic":"t","broker_name":"b","queue_id":3}]}',
    ),
]


def questions() -> Iterator[tuple[str, str]]:
    """Classes, and bodies to read by them: each member with each value, and without it."""
    for name, members in _MEMBERS.items():
        for member in members:
            others = {key: value for key, value in members.items() if key != member}
            yield name, _object(others)
            for value in _VALUES:
                if member not in _AS_LISTS or value[0] != "{":
                    yield name, _object({**others, member: value})
    yield from _WHOLE


def recorded() -> list[Row]:
    """What was asked and read: `class`, `body`, and `again`, what was read as the class writes it, or `thrown`."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _object(members: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{value}' for name, value in members.items()) + "}"


def _answered() -> Iterator[Row]:
    asked = [{"class": name, "body": body} for name, body in questions()]
    printed = java("4.9.4", "Bodies", stdin="".join(json.dumps(question) + "\n" for question in asked))
    for question, line in zip(asked, printed.splitlines(), strict=True):
        answer = json.loads(line)
        if "again" in answer:
            answer["again"] = json.dumps(_without_now(json.loads(answer["again"])))
        yield {**question, **answer}


def _without_now(value: Any) -> Any:
    if isinstance(value, dict):
        now = time.time() * 1000
        is_now = {name for name, item in value.items() if name == "subVersion" and abs(item - now) < _A_DAY}
        return {name: _without_now(item) for name, item in value.items() if name not in is_now}
    return [_without_now(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    """Asks anew, and puts the answers into the golden file."""
    rows = list(_answered())
    GOLDEN.parent.mkdir(exist_ok=True)
    with GOLDEN.open("wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        packed.writelines(json.dumps(row).encode() + b"\n" for row in rows)
    sys.stdout.write(f"{len(rows)} answers in {GOLDEN}\n")


if __name__ == "__main__":
    main()
