"""A store that goes to and fro between this package and a real 4.9.4 broker, killed and closed in turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interop.rocketmq import RocketMQ, java

from .dumped import check_keys
from .test_recover import Acknowledged, check_acknowledged, kill_while_appending

GEOMETRY = (
    "mappedFileSizeCommitLog=1048576",
    "mappedFileSizeConsumeQueue=20000",
    "maxHashSlotNum=1000",
    "maxIndexNum=4000",
)


def send(name_server: str, turn: int) -> Acknowledged:
    """What the Java producer was told is stored."""
    names = [f"java-{turn}-{n}" for n in range(200)]
    lines = [{"topic": "T", "body": name * 20, "keys": name, "queue": n % 3} for n, name in enumerate(names)]
    answer = java("4.9.4", "Produce", "--namesrv", name_server, "--spec", "-", stdin="\n".join(map(json.dumps, lines)))
    results = [json.loads(line) for line in answer.splitlines()]
    assert [result["sendStatus"] for result in results] == ["SEND_OK"] * len(names)
    return [(name, result["queueId"], result["queueOffset"]) for name, result in zip(names, results, strict=True)]


def lend(directory: Path, turn: int) -> Acknowledged:
    """Lets a broker take the store over, append to it, and leave it: closed or killed."""
    with RocketMQ("4.9.4", directory, *GEOMETRY, clean=turn % 2 == 1) as cluster:
        cluster.create_topic("T", 4)
        return send(cluster.name_server, turn)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_five_hand_overs_to_a_real_broker_and_back_lose_nothing(tmp_path: Path) -> None:
    store = tmp_path / "mq" / "store"
    acknowledged: Acknowledged = []
    for turn in range(5):
        acknowledged += kill_while_appending(store, "async", turn, 0.2)
        acknowledged += lend(tmp_path / "mq", turn)
    check_acknowledged(store, acknowledged)
    assert len(acknowledged) > 1000
    check_keys(store)
