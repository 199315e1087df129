"""A store that goes to and fro between this package and a real 4.9.4 broker, killed and closed in turns."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pytest

from .test_append import SCRIPT, check_dump
from .test_recover import Acknowledged, check_acknowledged, kill_while_appending

GEOMETRY = (
    "mappedFileSizeCommitLog=1048576",
    "mappedFileSizeConsumeQueue=20000",
    "maxHashSlotNum=1000",
    "maxIndexNum=4000",
)


def run(*arguments: object, stdin: str | None = None, seconds: float = 200) -> str:
    command = [str(SCRIPT), *map(str, arguments)]
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, text=True, check=True, timeout=seconds)
    return done.stdout


def free_port() -> int:
    """A port with free ones around it, as a rule: a broker takes three."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port if port < 60_000 else port - 5_000


def send(name_server: str, turn: int) -> Acknowledged:
    """What the Java producer was told is stored."""
    names = [f"java-{turn}-{n}" for n in range(200)]
    lines = [{"topic": "T", "body": name * 20, "keys": name, "queue": n % 3} for n, name in enumerate(names)]
    answer = run(
        "java", "4.9.4", "Produce", "--namesrv", name_server, "--spec", "-", stdin="\n".join(map(json.dumps, lines))
    )
    results = [json.loads(line) for line in answer.splitlines()]
    assert [result["sendStatus"] for result in results] == ["SEND_OK"] * len(names)
    return [(name, result["queueId"], result["queueOffset"]) for name, result in zip(names, results, strict=True)]


def lend(directory: Path, turn: int) -> Acknowledged:
    """Lets a broker take the store over, append to it, and leave it: closed or killed."""
    name_server, broker = free_port(), free_port()
    run("start", "4.9.4", directory, name_server, broker, *GEOMETRY)
    try:
        address = f"127.0.0.1:{name_server}"
        run("java", "4.9.4", "Admin", "updateTopic", "-n", address, "-c", "DefaultCluster", "-t", "T", "-r", 4, "-w", 4)
        return send(address, turn)
    finally:
        run("stop" if turn % 2 else "kill9", directory)


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
    check_dump(store)
