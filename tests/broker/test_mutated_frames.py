"""Frames that are nearly sound, by the ten thousands and by the million, against a server that runs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.effort import effort

from .live_server import LiveServer, Wire, own_memory, pull_fields, send_fields
from .mutations import Mutator

pytestmark = pytest.mark.slow
QUICK = 4_000
MANY = effort("RMQFAST_FRAMES", 200_000, 1_000_000)
SEED = int(os.environ.get("RMQFAST_SEED", "1"))
#: Frames of one connection; what follows a frame with a wrong length is lost.
OF_ONE = 3
BETWEEN_CHECKS = 2000


def mutate(server: LiveServer, mutator: Mutator, count: int) -> None:
    """Sends that many frames over many connections."""
    for _ in range(count // (2 * OF_ONE)):
        batches: dict[str, bytearray] = {"broker": bytearray(), "namesrv": bytearray()}
        for _ in range(2 * OF_ONE):
            name, frame = mutator.next()
            batches[name] += frame
        for name, frames in batches.items():
            with Wire(server.address(name)) as wire, suppress(OSError):
                wire.socket.sendall(frames)
                wire.socket.shutdown(1)
                assert wire.is_ended(), "the server keeps a connection that its peer has ended"


def check_serves(server: LiveServer, number: int) -> None:
    """Asks what a sound client asks, of both planes and of both servers."""
    with Wire(server.broker) as broker, Wire(server.name_server) as names:
        body = b"sound %d" % number
        header, _ = broker.ask(310, send_fields("sound", properties=f"KEYS\x01{number}"), body)
        assert header["code"] == 0, header
        offset = int(header["extFields"]["queueOffset"])
        header, messages = broker.ask(11, pull_fields("sound", "sound", offset=offset))
        assert (header["code"], body in messages) == (0, True), header
        assert broker.ask(28)[0]["code"] == 0
        assert names.ask(105, {"topic": "sound"})[0]["code"] == 0


def run(server: LiveServer, count: int, seed: int) -> dict[str, float]:
    """Sends the frames; MiB of memory after a tenth of them and at the end."""
    mutator, sent = Mutator(seed), 0
    memory: list[float] = []
    check_serves(server, 0)
    threads = server.threads()
    while sent < count:
        mutate(server, mutator, min(BETWEEN_CHECKS, count))
        sent += min(BETWEEN_CHECKS, count)
        check_serves(server, sent)
        memory.append(own_memory(server.pid) / (1 << 20))
    assert threads <= server.threads()
    early = memory[len(memory) // 10]
    return {"early": early, "end": memory[-1]}


def test_thousands_of_mutated_frames_leave_a_server_that_serves(tmp_path: Path) -> None:
    with LiveServer(tmp_path / "server") as server:
        run(server, QUICK, SEED)
        assert server.defects() == []
        assert server.stop() == 0
    with LiveServer(tmp_path / "server") as again:
        check_serves(again, QUICK)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_hundreds_of_thousands_of_mutated_frames_leave_a_server_that_serves(tmp_path: Path) -> None:
    """A million with RMQFAST_FULL=1, or as RMQFAST_FRAMES says."""
    with LiveServer(tmp_path / "server") as server:
        figures = run(server, MANY, SEED)
        assert server.defects() == []
        # names that nobody has used before become topics and groups, as they do on a real broker
        assert figures["end"] < figures["early"] + 200, figures
        assert server.stop() == 0
