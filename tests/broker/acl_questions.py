"""What the real classes of ACL 1.0 are asked; `golden/acl.jsonl.gz` has their answers.

`python -m tests.broker.acl_questions` asks them anew: it needs Java and Maven, see tests/interop.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

from tests.interop.rocketmq import java

GOLDEN = Path(__file__).parent / "golden" / "acl.jsonl.gz"
Question = dict[str, Any]

_ADDRESSES = """
1.2.3.4 1.2.3.9 1.2.3.10 1.2.3.0 1.2.30.4 1.2.0.4 1.7.8.9 10.2.3.4 127.0.0.1 255.255.255.255 0:0:0:0:0:0:0:1
fe80:0:0:0:0:0:0:1 fe80:0:0:0:1:2:3:4 FE80:0:0:0:0:0:5:10 5:6:7:8:9:a:b:c 5:6:7:8:9:a:b:1c 5:6:7:8:9:a:2:c
0:0:0:0:0:0:0:0 fe80:0:0:0:0:0:0:1%eth0 2:0:0:0:ac5:78:1:4 2:0:0:0:ac5:78:100:4 2:0:0:0:ac5:78:201:4
"""
ADDRESSES = _ADDRESSES.split()
#: Between bars; blanks count.
_PATTERNS = (
    "|  |*|*.*.*.*|*:*:*:*:*:*:*:*|1.2.3.4|1.2.3.04|1.2.3|1.2.3.256|localhost|1.2.3.4 |::1|fe80::1|FE80::0001|::|"
    "1::2::3|fe80::1%eth0|fe80::12345|::ffff:1.2.3.4|:::|5:6:7:8:9:a:b:c|5:6:7:8:9:a:b|fe80::/64|fe80::/640|"
    "1.2.3.0/24|1.2.3.*|1.2.*.*|1.*.*.*|1.2.*|1.*|*.2.3.4|1.2.3.4-9|1.2.3-9.*|1.2-7.*.*|1.2.3.9-4|1.2.3.4-256|"
    "1.2.3.-4|1.2.3.4-|1.2.3.4-5-9|1.2.3.0-0|1.2.3.0-4|1.2.3-30.4|1.2.3-9.*.*|256.2.3.*|1.256.3.*|a.2.3.*|1.b.3.*|"
    "1.2.c.*|1.02.3.*|1.2.3.4*|1.2.3.*4|1..2.3.*|my-host|-|1-5|1.2.3.a-b| 1.2.3.*|1.2. 3 .*|1.2.3.{4,9}|"
    "1.2.3.{4, 9}|1.2.3.{}|1.2.3.{4}|1.2.3.4}|1.2.{3,4}|1.2.{3,30}.4|{1,2}.2.3.4|}|1.2.3.{256}|fe80::{1,2}|"
    "fe80:0:0:0:0:0:0:{1,2}|5:6:7:8:9:a:b:{c,1c}|fe80::1}|fe80::{g}|::{1}|1.2.3.4,127.0.0.1|1.2.3.4,|,|"
    "1.2.3.4, 127.0.0.1|1.2.3.*,127.0.0.1|fe80::1,1.2.3.4,::1|1.2.3.4,x|fe80::*|fe80:0:0:0:0:0:0:*|"
    "fe80:0:0:0:0:0:5:*|5:6:7:8:9:a:b:1-20|5:6:7:8:9:a:b:*|5:6:7:8:9:a:1-b:*|5:6:*|*:6|5:*:6|2::ac5:78:1-200:*|"
    "2::ac5:78:1-200|fe80::1-20:*|fe80::1-20|fe80::20-1|fe80::-1|fe80::0-0|1-2:3::|5:6:7:8:9:a:b:c:*|::*|::1:*|"
    "::1-5|fe80::g:*|12345::*|5:6:7:8:9:a:b:1-10000|fe80::1-2:3|5:6-7:8:9:a:b:c:*|::1-2:*:*"
)
PATTERNS = _PATTERNS.split("|")
PERMISSIONS = [
    "PUB",
    "SUB",
    "PUB|SUB",
    "SUB|PUB",
    "DENY",
    " PUB ",
    "\tSUB\n",
    "pub",
    "",
    "ANY",
    "PUB | SUB",
    "PUB|SUB|DENY",
    "\u00a0PUB",
    None,
]
RESOURCES = [
    None,
    [],
    ["a=PUB"],
    ["a=DENY"],
    [" a = SUB|PUB "],
    ["a"],
    ["a=b=c"],
    ["a=X"],
    [""],
    ["=PUB"],
    ["a=="],
    ["a=PUB", "b"],
    ["a=pub"],
    ["a= "],
    ["==a==SUB=="],
]

PLAIN_ACL = """
globalWhiteRemoteAddresses:
- 10.10.103.*
- 192.168.0.1-9
accounts:
- accessKey: RocketMQ
  secretKey: 12345678
  whiteRemoteAddress:
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - topicA=DENY
  - topicB=PUB|SUB
  - topicC=SUB
  - topicD=PUB
  groupPerms:
  # the group should convert to retry topic
  - groupA=DENY
  - groupB=PUB|SUB
  - groupC=SUB
  - groupD=PUB
- accessKey: rocketmq2
  secretKey: "87654321"
  whiteRemoteAddress: 192.168.1.*
  admin: true
- accessKey: adminWithPerms
  secretKey: 'adminWithPerms'
  admin: yes
  defaultTopicPerm: SUB|PUB
  topicPerms: [topicA=DENY]
- {accessKey: sümmer-über, secretKey: gehëim-ß-🚀, defaultTopicPerm: PUB}
- {accessKey: everywhere, secretKey: everywhere, whiteRemoteAddress: "*"}
dataVersion:
- counter: 3
  timestamp: 1690000000000
"""  # fmt: skip
OTHER_ACL = """
globalWhiteRemoteAddresses: ["172.16.0.{1,2}"]
accounts:
- {accessKey: RocketMQ, secretKey: other-file, admin: true}
- {accessKey: onlyHere, secretKey: onlyHere1, defaultGroupPerm: "PUB|SUB", defaultTopicPerm: PUB|SUB}
"""
BROKEN = {
    "no mapping": "- a\n- b\n",
    "no yaml": "accounts: [\n",
    "short access key": "accounts:\n- {accessKey: short6, secretKey: '12345678'}\n",
    "short secret": "accounts:\n- {accessKey: RocketMQ, secretKey: 123456}\n",
    "no secret": "accounts:\n- {accessKey: RocketMQ}\n",
    "topic entry": "accounts:\n- {accessKey: RocketMQ, secretKey: '12345678', topicPerms: [a]}\n",
    "group entry": "accounts:\n- {accessKey: RocketMQ, secretKey: '12345678', groupPerms: [a=b=c]}\n",
    "white list": "globalWhiteRemoteAddresses: [1.2.3.999]\n",
    "white list of an account": "accounts:\n- {accessKey: RocketMQ, secretKey: secret1, whiteRemoteAddress: 1.2.3.300}",
    "a class": "accounts: !!javax.script.ScriptEngineManager [a]\n",
}
SOUND = {
    "empty": "",
    "only a comment": "# nothing\n",
    "no accounts": "accounts:\n",
    "an empty entry of the white list": "globalWhiteRemoteAddresses:\n-\n",
    "twice": "accounts:\n- {accessKey: RocketMQ, secretKey: firstOne}\n- {accessKey: RocketMQ, secretKey: otherOne}\n",
    "texts that look like something else": "accounts:\n- {accessKey: 123456789, secretKey: 0x1234567, admin: 'true'}\n",
    "members that nobody knows": "x: 1\naccounts:\n- {accessKey: RocketMQ, secretKey: '12345678', y: 2}\n",
}


def body(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def heartbeat(*groups: tuple[str | None, list[str | None]]) -> str:
    consumers = [
        {"groupName": group, "subscriptionDataSet": [{"topic": topic, "subString": "*"} for topic in topics]}
        for group, topics in groups
    ]
    return body(json.dumps({"clientID": "c", "consumerDataSet": consumers, "producerDataSet": []}))


_MANY: list[str | None] = [f"topic{number}" for number in range(30)]
_PAIRS = [
    ("topicA", "groupA"), ("topicB", "groupA"), ("topicC", "groupC"), ("other", "groupC"), ("topicC", "other"),
    ("topicD", "groupD"), ("%RETRY%groupA", "groupA"),
]  # fmt: skip
_SENT_TO = ["topicA", "topicB", "topicC", "topicD", "other", "%RETRY%groupB", ""]
_CODES = [*range(10, 47), *range(50, 55), *range(100, 107), *range(200, 225), *range(300, 330), 999]
REQUESTS: list[tuple[int, dict[str, str] | None, str | None]] = [
    *[(code, {}, None) for code in _CODES],
    *[(10, {"topic": topic, "group": "groupA"}, body("x")) for topic in _SENT_TO],
    *[
        (310, {"b": topic, "a": "groupB", "topic": "topicA"}, None)
        for topic in ["topicA", "topicB", "%RETRY%groupA", "RMQ_SYS_TRACE_TOPIC"]
    ],
    *[(320, {"b": topic, "a": "groupB"}, None) for topic in ["topicA", "topicB"]],
    *[
        (code, {"topic": topic, "consumerGroup": group, "queueId": "x"}, None)
        for code in (11, 14, 15)
        for topic, group in _PAIRS
    ],
    (11, {"topic": "topicC"}, None),
    (11, {"consumerGroup": "groupC"}, None),
    (12, {"topic": "topicD"}, None),
    (12, {"topic": "topicC", "_UNIQUE_KEY_QUERY": "true"}, None),
    (36, {"group": "groupD"}, None),
    (36, {"group": "groupB"}, None),
    (35, {"clientID": "c", "consumerGroup": "groupA"}, None),
    (35, {"clientID": "c", "producerGroup": "groupA"}, None),
    (38, {"consumerGroup": "groupD"}, None),
    (34, {}, heartbeat()),
    (34, {}, heartbeat(("groupA", ["topicA", "other"]), ("groupC", ["topicC"]))),
    (34, {}, heartbeat(("groupC", ["topicC", "topicB"]))),
    (34, {}, heartbeat(("groupC", _MANY))),
    (34, {}, heartbeat((None, [None, "topicC"]))),
    (34, {}, heartbeat(("groupC", ["x" * 13, *_MANY[:9], "Aa", "BB"]))),
    (34, {}, body("{")),
    (34, {}, body("[]")),
    (34, {}, body("null")),
    (34, {}, body('{"consumerDataSet":null}')),
    (34, {}, body("{}")),
    (17, {"topic": "topicB"}, None),
    (25, None, body("a=b")),
    (28, {"é": "ü", "ﬀ": "1", "🚀": "2", "AccessKez": "3", "Signaturf": "4", "": "5"}, body("🚀")),
]
ACCOUNTS = [
    ("RocketMQ", "12345678"),
    ("rocketmq2", "87654321"),
    ("adminWithPerms", "adminWithPerms"),
    ("sümmer-über", "gehëim-ß-🚀"),
    ("RocketMQ", "other-file"),
    ("onlyHere", "onlyHere1"),
    ("nobody-knows", "nobody-knows"),
]
UPDATES: list[Question] = [
    {
        "op": "update",
        "account": {
            "accessKey": "newcomer",
            "secretKey": "newcomer-secret",
            "topicPerms": ["a=PUB", "b=SUB|PUB"],
            "groupPerms": ["g=SUB"],
        },
    },
    {
        "op": "update",
        "account": {
            "accessKey": "RocketMQ",
            "secretKey": "changed-one",
            "admin": True,
            "defaultTopicPerm": "SUB",
            "whiteRemoteAddress": "",
        },
    },
    {"op": "update", "account": {"accessKey": "short6", "secretKey": "12345678"}},
    {"op": "update", "account": {"accessKey": "RocketMQ", "secretKey": "123456"}},
    {"op": "update", "account": {"accessKey": "RocketMQ"}},
    {"op": "update", "account": {"accessKey": "RocketMQ", "secretKey": "12345678", "topicPerms": ["a"]}},
    {"op": "update", "account": {"accessKey": "RocketMQ", "secretKey": "12345678", "groupPerms": ["a=ALL"]}},
    {"op": "delete", "accessKey": "adminWithPerms"},
    {"op": "delete", "accessKey": "nobody-knows"},
    {"op": "delete", "accessKey": ""},
    {"op": "white", "addresses": ["1.2.3.4", "10.0.0.*"], "file": None},
    {"op": "white", "addresses": ["1.2.3.5"], "file": "conf/plain_acl.yml"},
    {"op": "white", "addresses": ["1.2.3.6"], "file": "conf/nothing.yml"},
    {"op": "white", "addresses": None, "file": ""},
    {"op": "all"},
]


def rules(text: str, **others: str) -> Question:
    return {
        "op": "rules",
        "files": {"conf/plain_acl.yml": text} | {f"conf/acl/{name}.yml": other for name, other in others.items()},
    }


def questions() -> list[Question]:
    asked: list[Question] = []
    for code, ext, payload in REQUESTS:
        signed = {"code": code, "ext": ext, "body": payload, "accessKey": "sümmer-über", "secretKey": "gehëim-ß-🚀"}
        asked += [{"op": "sign", **signed}, {"op": "sign", **signed, "token": "a token"}]
    asked += [
        {"op": "pattern", "pattern": pattern, "addresses": [address]} for pattern in PATTERNS for address in ADDRESSES
    ]
    asked += [{"op": "permission", "text": text} for text in PERMISSIONS]
    asked += [{"op": "resources", "resources": resources} for resources in RESOURCES]
    asked += [rules(text) for text in [*BROKEN.values(), *SOUND.values()]]
    for files in (rules(PLAIN_ACL), rules(PLAIN_ACL, other=OTHER_ACL)):
        asked.append(files)
        for code, ext, payload in REQUESTS:
            request = {"op": "check", "code": code, "ext": ext, "body": payload, "address": "1.2.3.4:5678"}
            asked.append(request)
            asked += [request | {"accessKey": key, "secretKey": secret} for key, secret in ACCOUNTS]
    for address in [
        "10.10.103.7:1",
        "192.168.0.9:1",
        "192.168.0.10:1",
        "192.168.1.3:1",
        "172.16.0.2:1",
        "0:0:0:0:0:0:0:1:1",
    ]:
        for access_key, secret_key in [*ACCOUNTS, ("everywhere", "wrong"), ("rocketmq2", "wrong")]:
            keys = {"accessKey": access_key, "secretKey": secret_key}
            asked.append({"op": "check", "code": 17, "ext": {}, "body": None, "address": address, **keys})
    asked.append(rules(PLAIN_ACL))
    asked += UPDATES
    asked.append(rules(""))
    asked += [UPDATES[0], {"op": "all"}]
    return asked


def answers(asked: list[Question]) -> list[Question]:
    """What the real classes answer; times of files are masked."""
    lines = "".join(json.dumps(question) + "\n" for question in asked)
    return [masked(json.loads(line)) for line in java("4.9.4", "Acl", stdin=lines).splitlines()]


def masked(answer: Question) -> Question:
    if "file" in answer:
        answer["file"] = re.sub(r"timestamp: \d+", "timestamp: 0", answer["file"])
    return answer


def golden() -> list[tuple[Question, Question]]:
    lines = gzip.decompress(GOLDEN.read_bytes()).splitlines()
    return [(entry["question"], entry["answer"]) for entry in map(json.loads, lines)]


if __name__ == "__main__":
    asked_now = questions()
    entries = zip(asked_now, answers(asked_now), strict=True)
    GOLDEN.parent.mkdir(exist_ok=True)
    text = "".join(json.dumps({"question": question, "answer": answer}) + "\n" for question, answer in entries)
    GOLDEN.write_bytes(gzip.compress(text.encode(), mtime=0))
