"""Questions about files of offsets, for `LocalOffsets.java` of tests/interop; run as a program it records answers."""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.interop.rocketmq import java

GOLDEN = Path(__file__).parents[2] / "golden" / "client" / "offsets-4.9.4.jsonl.gz"

Queue = list[str | int]
Row = dict[str, Any]
T0: Queue = ["t", "b", 0]
T1: Queue = ["t", "b", 1]


def text_of(*offsets: tuple[Queue, int]) -> str:
    """A file as somebody may write it, on one line."""
    members = (f'{{"brokerName":"{b}","queueId":{q},"topic":"{t}"}}:{offset}' for (t, b, q), offset in offsets)
    return '{"offsetTable":{' + ",".join(members) + "}}"


# What a file may be: nothing at all, an empty one, one of no use, sound ones.
FILES = (
    None,
    "",
    " \n",
    "{",
    "garbage",
    text_of((T0, 5))[:-2],
    text_of((T0, 5))[: len(text_of((T0, 5))) // 2],
    "{}",
    '{"offsetTable":{}}',
    text_of((T0, 5)),
    text_of((T0, 5), (T1, 1 << 40)),
    '{"offsetTable":{{"topic":"t","queueId":0,"brokerName":"b"}:"7"},"more":1}',
    text_of((T0, -1)),
)


def load_questions() -> Iterator[Row]:
    """Each file with each file before it."""
    for file in FILES:
        for bak in (*FILES[:5], text_of((T0, 3)), FILES[8]):
            yield {"op": "load", "file": file, "bak": bak, "queues": [T0, T1]}


def persist_questions(seed: int, rows: int) -> Iterator[Row]:
    """Random offsets, stored over and over, of all queues or of some."""
    rng = random.Random(seed)
    for number in range(rows):
        brokers = rng.sample(["broker-a", "broker-b", "bröker", 'b"c\\d', "b\t\x01", "east@b", "b/\u2028"], 3)
        topics = rng.sample(["orders", "%RETRY%g", "TopicTest", "logs_2"], 2)
        every = [[t, b, q] for t in topics for b in brokers for q in range(16)]
        queues = rng.sample(every, rng.choice((0, 1, 2, 3, 5, 8, 11, 12, 13, 24, 40)))
        offsets = [[queue, rng.choice((0, 7, rng.randrange(1 << 31), rng.randrange(1 << 62)))] for queue in queues]
        wanted = queues if rng.random() < 0.7 else [queue for queue in every if rng.random() < 0.3]
        yield {"op": "persist", "group": f"g{number % (rows // 3 + 1)}", "offsets": offsets, "queues": wanted}


def answered(questions: Iterable[Row]) -> list[Row]:
    """The questions, each with what 4.9.4 answers."""
    asked = list(questions)
    printed = java("4.9.4", "LocalOffsets", stdin="".join(json.dumps(question) + "\n" for question in asked))
    answers = [json.loads(line[line.index("{") :]) for line in printed.splitlines() if "{" in line]
    assert len(answers) == len(asked), printed[-2000:]
    return [{**question, "answer": answer} for question, answer in zip(asked, answers, strict=True)]


def recorded() -> list[Row]:
    """What was asked and answered."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def main() -> None:
    """Asks anew, and puts the answers into the golden file."""
    rows = answered([*load_questions(), *persist_questions(1, 300)])
    with GOLDEN.open("wb") as file, gzip.GzipFile("", "wb", mtime=0, fileobj=file) as packed:
        packed.writelines(json.dumps(row).encode() + b"\n" for row in rows)
    sys.stdout.write(f"{len(rows)} answers in {GOLDEN}\n")


if __name__ == "__main__":
    main()
