"""Asks RocketMQ's own classes and the reference the same questions about a store that the reference wrote.

    python -m tests.interop.check_queries [VERSION] [MESSAGES]

Which offset belongs to a time, and what getMessage gives from an offset, with tags and without. Exit status 0 when all
answers are equal.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.interop.check_writer import think_up
from tests.interop.rocketmq import SCRIPT
from tests.reference.store import Store
from tests.reference.writer import Options, write_store

TAGS = ("*", "TagA", "Aa", "BB || TagA", "nobody's", "🚀||标签 || ")
SHIFTS = (-100_000, -1, 0, 1, 170, 400, 100_000)
Question = dict[str, Any]


def main(version: str, count: int) -> int:
    """Prints the answers that differ, and 1 where there are any."""
    options = Options(first_file=2, first_queue_offsets={("T", 0): 3, ("Aa", 1): 250}, v2=version.startswith("5."))
    with TemporaryDirectory() as directory:
        # times of one second for several messages
        messages = [replace(m, store_timestamp=m.store_timestamp // 500 * 500) for m in think_up(count, version)]
        written = write_store(Path(directory) / "store", messages, options)
        store = Store.open(written.path, geometry=options.index_geometry)
        questions = list(think_of_questions(store, version))
        asked = "".join(json.dumps(question) + "\n" for question in questions)
        command = [str(SCRIPT), "java", version, "Ask", str(written.path)]
        done = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, check=False)
    theirs = [json.loads(line) for line in done.stdout.strip("\n").split("\n")]
    for line in theirs:
        line.pop("slave", None)  # the store is small
    ours = [answer(store, question, version) for question in questions]
    found = [f"{q}: {a}, expected {b}" for q, a, b in zip(questions, ours, theirs, strict=True) if a != b]
    title = f"RocketMQ {version}: exit {done.returncode}, {len(questions)} questions, {len(found)} differences"
    sys.stdout.write("\n".join([title, *found[:20], ""]))
    return 1 if found or done.returncode else 0


def think_of_questions(store: Store, version: str) -> Iterator[Question]:
    """Times at and beside those of messages, offsets in, at the ends of and outside of every queue."""
    r = random.Random(1)
    for (topic, queue_id), queue in store.queues.items():
        where = {"topic": topic, "queueId": queue_id}
        low, high = store.topics()[topic][queue_id]
        times = [
            record.store_timestamp for record in store.records() if (record.topic, record.queue_id) == (topic, queue_id)
        ]
        for time in r.sample(times, min(10, len(times))):
            for shift in SHIFTS:
                yield {**where, "time": time + shift, "upper": version.startswith("5.") and r.random() < 0.5}
        inside = [r.randrange(low, high) for _ in range(10)] if high > low else []
        for offset in (-1, low - 1, low, high - 1, high, high + 1, *queue.files, *inside):
            yield {**where, "offset": offset, "max": r.choice([1, 5, 32, 1000]), "tags": r.choice(TAGS)}


def answer(store: Store, question: Question, version: str) -> dict[str, Any]:
    topic, queue_id = question["topic"], question["queueId"]
    if "time" in question:
        if version.startswith("5."):
            return {"offset": store.search_offset_5(topic, queue_id, question["time"], question["upper"])}
        return {"offset": store.search_offset_4(topic, queue_id, question["time"])}
    result = store.get(topic, queue_id, question["offset"], question["max"], question["tags"])
    bounds = {"next": result.next_begin_offset, "min": result.min_offset, "max": result.max_offset}
    return {"status": str(result.status), **bounds, "offsets": [record.queue_offset for record in result.records]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?", default="4.9.4")
    parser.add_argument("messages", nargs="?", type=int, default=1500)
    arguments = parser.parse_args()
    sys.exit(main(arguments.version, arguments.messages))
