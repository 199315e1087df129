"""Traces, for `TraceData.java` of tests/interop; run as a program it records what 4.9.4 makes of them."""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.interop.rocketmq import java

GOLDEN = Path(__file__).parents[2] / "golden" / "client" / "trace-4.9.4.jsonl.gz"
Row = dict[str, Any]

_ID = "7F0000010BD918B4AAC2{:012X}"
#: Texts that Java's decoder does not take, or takes in a way of its own.
_ODD = [
    "",
    "\x02",
    "Pub",
    "Other\x011\x02",
    "Pub\x01x\x01r\x01g\x01t\x01i\x01a\x01k\x01h\x011\x012\x010\x01o\x01true\x02",
    "SubAfter\x01r\x01i\x015\x01true\x01\x01\x02",
]
#: What older and newer clients write: fewer fields, or more.
_OTHER_VERSIONS = [
    "Pub\x011\x01r\x01g\x01t\x01i\x01a\x01k\x01h\x0110\x0120\x013\x01true\x02",
    "Pub\x011\x01r\x01g\x01t\x01i\x01a\x01k\x01h\x0110\x0120\x010\x01off\x01TRUE\x02",
    "Pub\x011\x01r\x01g\x01t\x01i\x01a\x01k\x01h\x0110\x0120\x010\x01off\x01false\x0110.0.0.1\x02",
    "SubBefore\x011\x01r\x01g\x01q\x01i\x012\x01k\x0110.0.0.1\x02",
    "SubAfter\x01q\x01i\x015\x01false\x01k\x02",
    "SubAfter\x01q\x01i\x015\x01true\x01k\x014\x02",
    "SubAfter\x01q\x01i\x015\x01true\x01k\x014\x011\x02",
    "SubAfter\x01q\x01i\x015\x01true\x01k\x014\x011\x01g\x01more\x02",
]


def contexts(seed: int, rows: int) -> Iterator[Row]:
    """Random contexts."""
    rng = random.Random(seed)
    for number in range(rows):
        kind = rng.choice(["Pub", "SubBefore", "SubAfter", "EndTransaction"])
        beans = rng.randrange(1, 4) if kind.startswith("Sub") else 1
        yield {
            "traceType": kind,
            "timeStamp": 1_600_000_000_000 + number,
            "regionId": rng.choice(["DefaultRegion", "eu", None]),
            "groupName": rng.choice(["g", "billing-eu", "größe"]),
            "costTime": rng.randrange(5000),
            "success": rng.random() < 0.7,
            "requestId": _ID.format(rng.randrange(1 << 40)),
            "contextCode": rng.randrange(5),
            "beans": [_bean(rng) for _ in range(beans)],
        }


def _bean(rng: random.Random) -> Row:
    ids = [_ID.format(rng.randrange(1 << 40)) for _ in range(rng.choice([1, 1, 1, 3]))]
    return {
        "topic": rng.choice(["orders", "%RETRY%g"]),
        "msgId": ",".join(ids),
        "offsetMsgId": ",".join("0A000001" + each[8:] for each in ids),
        "tags": rng.choice(["paid", "größe", None]),
        "keys": rng.choice(["42", "a b c", "a  b", "größe", None]),
        "storeHost": "10.0.0.1:10911",
        "retryTimes": rng.randrange(17),
        "bodyLength": rng.randrange(1 << 22),
        "msgType": rng.choice(["Normal_Msg", "Trans_Msg_Half", "Trans_msg_Commit", "Delay_Msg"]),
        "transactionId": rng.choice([ids[0], None]),
        "transactionState": rng.choice(["COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW"]),
        "fromTransactionCheck": rng.random() < 0.5,
    }


def answered(questions: list[Row]) -> list[Row]:
    """The questions, each with what 4.9.4 answers."""
    printed = java("4.9.4", "TraceData", stdin="".join(json.dumps(question) + "\n" for question in questions))
    answers = [json.loads(line[line.index("{") :]) for line in printed.splitlines() if "{" in line]
    assert len(answers) == len(questions), printed[-2000:]
    return [{**question, "answer": answer} for question, answer in zip(questions, answers, strict=True)]


def recorded() -> list[Row]:
    """What was asked and answered."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main() -> None:
    """Asks anew, and puts the answers into the golden file."""
    encoded = answered(list(contexts(1, 400)))
    texts = [row["answer"]["data"] for row in encoded]
    several = ["".join(texts[start : start + 5]) for start in range(0, len(texts), 5)]
    rows = [*encoded, *answered([{"text": text} for text in [*several, *_ODD, *_OTHER_VERSIONS]])]
    with GOLDEN.open("wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        packed.writelines(json.dumps(row).encode() + b"\n" for row in rows)
    sys.stdout.write(f"{len(rows)} answers in {GOLDEN}\n")


if __name__ == "__main__":
    main()
