"""Bodies as clients in other languages write them, and what RocketMQ's classes read in them.

`python -m tests.remoting.fastjson_bodies` asks the classes of 4.9.4 about the same bodies again; needs Java. A body
that is added to the golden file is read with the others.
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


def recorded() -> list[Row]:
    """The rows: `class`, `body`, and `again`, what was read as the class writes it, or `thrown`."""
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _answered() -> Iterator[Row]:
    asked = [{"class": row["class"], "body": row["body"]} for row in recorded()]
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
