"""What RocketMQ's own classes, and a real 4.9.4 broker, make of an exported store."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests import golden_stores
from tests.golden_stores import PathOf
from tests.interop.rocketmq import RocketMQ, java
from tests.reference import random_store
from tests.reference.config_json import dumps
from tests.reference.writer import Message, Options, write_store
from tests.store.dumped import Lines, check_dump
from tests.store.scanned import opened, rows_of
from tests.store.test_export import still
from tests.store.test_handover import GEOMETRY

MODES = ("pull", "lite", "push", "orderly")
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def check_queues(path: Path) -> Lines:
    """RocketMQ's classes find the store sound, with the bounds of its queues, and get all messages of each."""
    lines = check_dump(path)
    rows, bounds = rows_of(opened(path).scan()), opened(path).topics()
    for line in lines["queue"]:
        low, high = bounds.get(line["topic"], {}).get(line["queueId"], (0, 0))
        assert (line["min"], line["max"]) == (low, high)
    for line in lines["get"]:
        of_queue = [r for r in rows if (r["topic"], r["queue_id"]) == (line["topic"], line["queueId"])]
        assert line["messages"] == len(of_queue)
    for line in lines.get("index", []):
        assert line["commitLogOffsets"]
    return lines


@pytest.mark.parametrize("name", ["basic-4.9.4", "crash-4.9.4", "delaytx-4.9.4", "offsets-4.9.4"])
def test_a_whole_store_is_sound_to_rocketmq(name: str, golden_store: PathOf, tmp_path: Path) -> None:
    store = opened(golden_store(name))
    store.export(tmp_path / "out")
    lines = check_queues(tmp_path / "out")
    assert len(lines["msg"]) == len(golden_stores.expected(name)["msg"])
    assert "cqblank" not in lines


def test_a_slice_is_served_from_its_first_to_its_last_message(golden_store: PathOf, tmp_path: Path) -> None:
    store = opened(golden_store("basic-4.9.4"))
    slices: list[dict[str, Any]] = [{"tags": "Aa || BB"}, {"start_offset": 130, "end_offset": 400}, {"tags": "TagA"}]
    for n, options in enumerate(slices):
        report = store.export(tmp_path / f"{n}", "fx_q1", **options)
        lines = check_queues(tmp_path / f"{n}")
        assert len(lines["msg"]) == report.rows > 100
        assert ("cqblank" in lines) == ("tags" in options)


def test_gaps_over_many_files_of_log_and_queue_are_passed(tmp_path: Path) -> None:
    """A tag in one of forty messages, so that whole files of the queues hold none, and the log has several files."""
    tags = ["rare" if n % 40 == 7 else "often" for n in range(2000)]
    messages = [
        Message(
            "T", b"x" * 300, queue_id=n % 3, properties=(("TAGS", tag),), store_timestamp=random_store.START_MILLIS + n
        )
        for n, tag in enumerate(tags)
    ]
    options = Options(commitlog_file_size=4096, consume_queue_file_size=200, first_queue_offsets={("T", 1): 13})
    store = opened(write_store(tmp_path / "store", messages, options).path)
    report = store.export(tmp_path / "out", "T", tags="rare")
    assert report.rows == tags.count("rare")
    assert len(list((tmp_path / "out/commitlog").iterdir())) > 3
    check_queues(tmp_path / "out")


def consumed(mode: str, address: str, *options: object) -> list[dict[str, Any]]:
    arguments = ("--mode", mode, "--namesrv", address, "--topic", "fx_q1", "--group", f"g-{mode}", "--full-body")
    answer = java("4.9.4", "Consume", *arguments, "--idle-ms", 60_000, *options)
    return [json.loads(line) for line in answer.splitlines()]


def test_consumers_of_a_real_broker_get_each_message_of_a_slice(golden_store: PathOf, tmp_path: Path) -> None:
    source = opened(golden_store("basic-4.9.4"))
    wanted = rows_of(source.scan("fx_q1", tags="Aa || BB"))
    (tmp_path / "mq").mkdir()
    source.export(tmp_path / "mq" / "store", "fx_q1", tags="Aa || BB")
    # the offsets of consumers hold; without any they are sent on from 0, which takes half a minute
    offsets: Any = {f"fx_q1@g-{mode}": {0: wanted[0]["queue_offset"]} for mode in MODES}
    (tmp_path / "mq/store/config/consumerOffset.json").write_text(dumps({"offsetTable": offsets}))
    files = sorted((tmp_path / "mq/store/consumequeue/fx_q1/0").iterdir())
    with RocketMQ("4.9.4", tmp_path / "mq", *GEOMETRY, "mappedFileSizeConsumeQueue=2000") as broker:
        cleaned = time.monotonic() + 75  # a broker removes files of queues a minute after its start
        for mode in MODES:
            if mode == MODES[-2]:  # two kinds of consumers come before, two after
                time.sleep(max(0, cleaned - time.monotonic()))  # noqa: TID251 - it says nowhere that it looked
            found = sorted(
                consumed(mode, broker.name_server, "--count", len(wanted)),
                key=lambda line: int(line["queueOffset"]),
            )
            assert [line["queueOffset"] for line in found] == [row["queue_offset"] for row in wanted], mode
            assert [base64.b64decode(line["body"]) for line in found] == [row["body"] for row in wanted]
        assert sorted((tmp_path / "mq/store/consumequeue/fx_q1/0").iterdir()) == files
    # a clean stop: nothing to recover, nothing lost
    assert still(rows_of(opened(tmp_path / "mq/store").scan("fx_q1"))) == still(wanted)
    assert opened(tmp_path / "mq/store").verify().ok
