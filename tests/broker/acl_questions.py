"""Questions about ACL 1.0 and the answers of RocketMQ's classes, both of `golden/acl.jsonl.gz`.

`python -m tests.broker.acl_questions` asks the same again: it needs Java and Maven, see tests/interop. A question that
is added to the file is answered with the others.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

from tests.interop.rocketmq import java

GOLDEN = Path(__file__).parent / "golden" / "acl.jsonl.gz"
Question = dict[str, Any]


def golden() -> list[tuple[Question, Question]]:
    lines = gzip.decompress(GOLDEN.read_bytes()).splitlines()
    return [(entry["question"], entry["answer"]) for entry in map(json.loads, lines)]


def answers(asked: list[Question]) -> list[Question]:
    """The answers of the real classes; times of files are masked."""
    lines = "".join(json.dumps(question) + "\n" for question in asked)
    return [masked(json.loads(line)) for line in java("4.9.4", "Acl", stdin=lines).splitlines()]


def masked(answer: Question) -> Question:
    if "file" in answer:
        answer["file"] = re.sub(r"timestamp: \d+", "timestamp: 0", answer["file"])
    return answer


if __name__ == "__main__":
    questions = [question for question, _ in golden()]
    entries = zip(questions, answers(questions), strict=True)
    text = "".join(json.dumps({"question": question, "answer": answer}) + "\n" for question, answer in entries)
    GOLDEN.write_bytes(gzip.compress(text.encode(), mtime=0))
