"""A broker whose files another process truncates, removes or overwrites: it lives, says so, takes no more messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast.remoting import RequestCode
from rmqfast.remoting.fastjson import decode
from tests.broker.live_server import LiveServer, Wire, pull_fields, send_fields
from tests.broker.pulled import body_of, records_of
from tests.waiting import until

FLUSHES = ["ASYNC_FLUSH", "SYNC_FLUSH"]


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    with LiveServer(tmp_path / "server", {"flushDiskType": getattr(request, "param", "ASYNC_FLUSH")}) as server:
        yield server


def log_of(server: LiveServer) -> Path:
    return server.store / "commitlog" / f"{0:020}"


def send(wire: Wire, number: int) -> dict[str, object]:
    header, _ = wire.ask(310, send_fields("harmed"), b"%08d" % number)
    return header


def send_until_refused(wire: Wire, start: int) -> tuple[int, str]:
    """Sends until that is refused; how many were acknowledged, and the remark."""
    acknowledged = start

    def refused() -> str | None:
        nonlocal acknowledged
        header = send(wire, acknowledged)
        if header["code"] == 0:
            acknowledged += 1
            return None
        # the first one finds it, the later ones are refused for it
        assert header["code"] in {1, 10, 14}, header
        return str(header["remark"]) if header["code"] == 14 else None

    return acknowledged, str(until(refused))


def bodies(server: LiveServer) -> list[bytes]:
    """What a consumer gets of the queue."""
    found: list[bytes] = []
    with Wire(server.broker) as wire:
        offset = 0
        while True:
            header, body = wire.ask(11, pull_fields("harmed", "g", offset=offset))
            if header["code"] == 2:
                continue  # a busy machine
            if header["code"] != 0:
                return found
            found += [body_of(each) for each in records_of(body)]
            offset = int(header["extFields"]["nextBeginOffset"])


def runtime_info(server: LiveServer) -> dict[str, str]:
    with Wire(server.broker) as wire:
        table: dict[str, str] = decode(wire.ask(int(RequestCode.GET_BROKER_RUNTIME_INFO))[1])["table"]
    return table


@pytest.mark.parametrize("server", FLUSHES, indirect=True)
def test_a_log_that_is_truncated_is_read_only_and_no_signal(server: LiveServer) -> None:
    with Wire(server.broker) as wire:
        for number in range(50):
            assert send(wire, number)["code"] == 0
        os.truncate(log_of(server), 4096)
        _, remark = send_until_refused(wire, 50)
        assert "another process has shortened the file" in remark
        assert str(log_of(server)) in remark
        assert send(wire, 99)["code"] == 14
    assert all(body in {b"%08d" % number for number in range(10_000)} for body in bodies(server))
    until(lambda: "THE STORE IS READ-ONLY" in (server.directory / "server.log").read_text())
    assert "shortened the file" in runtime_info(server)["storeFailure"]


@pytest.mark.parametrize("server", FLUSHES, indirect=True)
def test_a_log_that_is_removed_is_written_back_with_all_that_was_acknowledged(server: LiveServer) -> None:
    with Wire(server.broker) as wire:
        for number in range(50):
            assert send(wire, number)["code"] == 0
        log_of(server).unlink()
        acknowledged, remark = send_until_refused(wire, 50)
    assert "another process has removed the file" in remark
    until(lambda: "written back, with all that was acknowledged" in runtime_info(server)["storeFailure"])
    server.stop()
    server.start()
    assert bodies(server)[:acknowledged] == [b"%08d" % number for number in range(acknowledged)]
    with Wire(server.broker) as wire:
        assert send(wire, 0)["code"] == 0


def test_messages_that_are_zeroes_are_told_of_and_the_others_are_given(server: LiveServer) -> None:
    with Wire(server.broker) as wire:
        for number in range(60):
            assert send(wire, number)["code"] == 0
    with rmqfast.open_store(server.store) as store:
        rows = store.scan("harmed", columns=["physical_offset"]).to_arrow().column("physical_offset").to_pylist()
    with log_of(server).open("r+b") as log:
        log.seek(rows[20])
        log.write(bytes(rows[24] - rows[20]))
    assert bodies(server) == [b"%08d" % number for number in range(60) if not 20 <= number < 24]
    said = server.directory / "server.log"
    until(lambda: said.read_text().count("consumers pass over this message") == 4)
    assert "topic harmed, queue 0, offset 20: consumers pass over this message, as" in said.read_text()
    assert runtime_info(server)["harmedMessages"] == "4"
    assert "storeFailure" not in runtime_info(server)


def test_units_that_are_zeroes_are_told_of(server: LiveServer) -> None:
    with Wire(server.broker) as wire:
        for number in range(20):
            assert send(wire, number)["code"] == 0
    with (server.store / "consumequeue" / "harmed" / "0" / f"{0:020}").open("r+b") as queue:
        queue.seek(20 * 7)
        queue.write(bytes(20 * 2))
    assert bodies(server) == [b"%08d" % number for number in range(20) if number not in {7, 8}]
    assert runtime_info(server)["harmedMessages"] == "2"


def test_a_queue_that_is_truncated_is_no_signal(server: LiveServer) -> None:
    with Wire(server.broker) as wire:
        for number in range(20):
            assert send(wire, number)["code"] == 0
        os.truncate(server.store / "consumequeue" / "harmed" / "0" / f"{0:020}", 0)
        _, remark = send_until_refused(wire, 20)
        assert "another process has shortened the file" in remark
        bodies(server)
        assert wire.ask(int(RequestCode.GET_BROKER_RUNTIME_INFO))[0]["code"] == 0
