"""The same messages given to RocketMQ's own store and to this package: log, queues and index are equal, every byte."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rmqfast
from rmqfast import AppendOptions, Message
from tests.interop.rocketmq import java
from tests.reference.consume_queue import java_hash
from tests.reference.host import Host

from .test_append import rows

COUNT = 3000
OPTIONS = AppendOptions(
    file_size=1 << 16,
    queue_file_size=2000,
    index_slots=1000,
    index_entries=4000,
    max_message_size=4 << 20,
    multi_dispatch=True,
)
HOSTS = (["127.0.0.1", 10911], ["10.1.2.3", 0], ["fd00::2", 40_000])
WORDS = ("a", "TagA", "Aa", "BB", "标签", "🚀", "polygenelubricants", "x" * 60)

Line = dict[str, Any]


def java_bucket(name: str) -> int:
    code = java_hash(name)
    return (code ^ code >> 16) & 15


def properties(r: random.Random) -> dict[str, str]:
    """A few, in the order in which Java's map gives them."""
    found = {}
    for name in ("KEYS", "TAGS", "UNIQ_KEY", "WAIT", "color", "键", "DELAY", "INNER_MULTI_DISPATCH", "REAL_TOPIC"):
        if r.random() < 0.3:
            found[name] = " ".join(r.choices(WORDS, k=r.randint(1, 3))) if name == "KEYS" else r.choice(WORDS)
    if "WAIT" in found:
        found["WAIT"] = r.choice(["true", "false"])
    if "DELAY" in found:
        # what waits a minute or more is not delivered while the test runs
        found["DELAY"] = str(r.choice([0, 5, 9, 18, 20]))
    if "INNER_MULTI_DISPATCH" in found:
        found["INNER_MULTI_DISPATCH"] = r.choice(["%LMQ%a", "%LMQ%a,%LMQ%b", "other,%LMQ%c"])
    return dict(sorted(found.items(), key=lambda pair: java_bucket(pair[0])))


def line(r: random.Random, store_host: list[Any], pairs: dict[str, str]) -> Line:
    return {
        "topic": r.choice(["T", "orders", "%RETRY%g", "t" * 127]),
        "body": base64.b64encode(r.randbytes(r.choice([0, 1, 100, 1000, 3000]))).decode(),
        "pairs": pairs,
        "properties": "\x02".join(f"{name}\x01{value}" for name, value in pairs.items()),
        "queueId": r.randint(0, 3),
        "flag": r.choice([0, 1, -7, 2**31 - 1]),
        "sysFlag": r.choice([0, 0, 0, 0, 0x2, 0x4, 0x8, 0xC]),
        "bornTimestamp": r.randint(0, 1 << 41),
        "bornHost": r.choice(HOSTS),
        "storeHost": store_host,
        "reconsumeTimes": r.randint(0, 16),
        "preparedTransactionOffset": r.randint(0, 1 << 40),
    }


def batch(r: random.Random, store_host: list[Any]) -> Line:
    """Of one queue; neither delayed nor in a transaction."""
    first = line(r, store_host, {}) | {"sysFlag": 0, "bornHost": store_host, "bornTimestamp": 5}
    lines = [line(r, store_host, {"TAGS": r.choice(WORDS)}) for _ in range(r.randint(1, 8))]
    same = ("topic", "queueId", "sysFlag", "bornHost", "bornTimestamp", "reconsumeTimes", "preparedTransactionOffset")
    first |= {"reconsumeTimes": 0, "preparedTransactionOffset": 0}
    return {"batch": [one | {name: first[name] for name in same} for one in lines]}


def think_up(store_host: list[Any]) -> list[Line]:
    r = random.Random(4)
    return [batch(r, store_host) if r.random() < 0.05 else line(r, store_host, properties(r)) for _ in range(COUNT)]


def put_by_rocketmq(path: Path, lines: list[Line]) -> None:
    sizes = ["--log-size", 1 << 16, "--queue-size", 2000, "--slots", 1000, "--index-num", 4000]
    printed = java("4.9.4", "Put", path, *sizes, stdin="\n".join(map(json.dumps, lines)), seconds=240)
    statuses = [json.loads(answer)["status"] for answer in printed.splitlines()]
    assert statuses == ["PUT_OK"] * len(lines)


def message(spec: Line) -> Message:
    return Message(
        spec["topic"],
        base64.b64decode(spec["body"]),
        properties=spec["pairs"],
        queue_id=spec["queueId"],
        flag=spec["flag"],
        born_timestamp=spec["bornTimestamp"],
    )


def append(store: rmqfast.WritableStore, spec: Line) -> None:
    if "batch" in spec:
        store.append_batch([message(one) for one in spec["batch"]])
        return
    store.append(
        message(spec),
        born_host=str(Host(*spec["bornHost"])),
        sys_flag=spec["sysFlag"],
        reconsume_times=spec["reconsumeTimes"],
        prepared_transaction_offset=spec["preparedTransactionOffset"],
    )


def store_times(path: Path, lines: list[Line]) -> list[int]:
    """When RocketMQ stored each line."""
    stored = iter(rows(path))
    times = []
    for spec in lines:
        mine = [next(stored) for _ in spec.get("batch", [spec])]
        times.append(round(mine[0]["store_timestamp"].timestamp() * 1000))
    return times


def written(path: Path, part: str) -> dict[str, bytes]:
    """Files that hold something; those of the index are named after the time."""
    files = {str(p.relative_to(path)): p.read_bytes() for p in sorted((path / part).rglob("*")) if p.is_file()}
    return {name: data for name, data in files.items() if data.strip(b"\0")}


@pytest.mark.long
@pytest.mark.real
@pytest.mark.parametrize("store_host", [HOSTS[0], HOSTS[2]], ids=["IPv4", "IPv6"])
def test_equal_input_gives_equal_bytes(store_host: list[Any], tmp_path: Path) -> None:
    lines = think_up(store_host)
    put_by_rocketmq(tmp_path / "theirs", lines)
    times = iter(store_times(tmp_path / "theirs", lines))
    options = replace(OPTIONS, store_host=str(Host(*store_host)))
    with rmqfast.open_store(tmp_path / "ours", mode="a", options=options, clock=lambda: next(times)) as store:
        for spec in lines:
            append(store, spec)
    for part in ("commitlog", "consumequeue"):
        ours, theirs = written(tmp_path / "ours", part), written(tmp_path / "theirs", part)
        assert sorted(ours) == sorted(theirs)
        assert [name for name in ours if ours[name] != theirs[name]] == []
    assert len(written(tmp_path / "ours", "commitlog")) > 30
    indexes = [list(written(tmp_path / side, "index").values()) for side in ("ours", "theirs")]
    assert indexes[0] == indexes[1]
    assert len(indexes[0]) >= 1
