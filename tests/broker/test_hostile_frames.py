"""Whatever comes to a cluster that runs: it is answered, or its connection ends, and all others are served."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from rmqfast import EmbeddedCluster
from tests.waiting import until

from .live_server import SMALL, Wire, own_memory, pull_fields, send_fields
from .mutations import NASTY, Recorded, framed, json_frame, one_of_each

LISTENERS = ["broker", "vip", "namesrv"]


@pytest.fixture(scope="module")
def inner() -> Iterator[Path]:
    """Where the store is; in memory, as thousands of changes of the configuration are each saved."""
    memory = Path("/dev", "shm")
    outer = Path(tempfile.mkdtemp(prefix="hostile", dir=memory if os.access(memory, os.W_OK) else None))
    yield outer / "inner"
    shutil.rmtree(outer)


@pytest.fixture(scope="module")
def cluster(inner: Path) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(inner / "store", config=SMALL | {"enablePropertyFilter": "true"}) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def sound(cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """After each test everybody is served, and no processor has failed."""
    yield
    serves(cluster)
    records = [(record.getMessage(), record.exc_info) for record in caplog.get_records("call")]
    # what a client does wrong is logged, too, but without a traceback
    assert [record for record in records if record[1]] == []
    assert max((len(message) for message, _ in records), default=0) < 2000


def serves(cluster: EmbeddedCluster) -> None:
    with Wire(address(cluster, "broker")) as wire, Wire(address(cluster, "namesrv")) as names:
        header, _ = wire.ask(310, send_fields("sound"), b"sound")
        assert header["code"] == 0, header
        pulled, body = wire.ask(11, pull_fields("sound", "sound", offset=int(header["extFields"]["queueOffset"])))
        assert (pulled["code"], b"sound" in body) == (0, True)
        assert wire.ask(28)[0]["code"] == names.ask(105, {"topic": "sound"})[0]["code"] == 0


def address(cluster: EmbeddedCluster, listener: str) -> str:
    if listener == "namesrv":
        return cluster.name_server
    host, _, port = cluster.brokers[0].address.rpartition(":")
    return f"{host}:{int(port) - (2 if listener == 'vip' else 0)}"


def number(value: int) -> bytes:
    return (value % (1 << 32)).to_bytes(4, "big")


HEADER = b'{"code":105,"extFields":{"topic":"t"},"flag":0,"language":"JAVA","opaque":1,"version":401}'
BINARY = b"\0\x69\0\x01\x91\0\0\0\x07\0\0\0\0\0\0\0\x01r\0\0\0\x0c\0\x05topic\0\0\0\x01t"
#: Lengths and headers that cannot be are the matter of frame.rs, json_header.rs and codec.rs: some of each.
MALFORMED = {
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(600),
    "zeroes": bytes(64),
    "negative length": number(-1) + bytes(8),
    "largest length": number(0x7FFFFFFF) + number(10),
    "serialiser 255": framed(HEADER, serialize_type=255),
    "JSON said to be binary": framed(HEADER, serialize_type=1),
    "binary said to be JSON": framed(BINARY),
    "no header": number(4) + number(0),
    "not UTF-8": framed(HEADER.replace(b'"t"', b'"\xff"')),
    "control character": framed(HEADER.replace(b'"t"', b'"\x01"')),
    "deep fields": framed(b'{"code":105,"extFields":{"a":' + b'{"a":' * 12_000),
    "binary: remark of 2 GiB": framed(BINARY[:13] + number(0x7FFFFFFF) + BINARY[17:], serialize_type=1),
    "binary: negative remark": framed(BINARY[:13] + number(-1) + BINARY[17:], serialize_type=1),
    "binary: negative name": framed(BINARY[:22] + b"\xff\xff" + BINARY[24:], serialize_type=1),
    "binary: many empty fields": framed(BINARY[:18] + number(6 * 5000) + bytes(6 * 5000), serialize_type=1),
}


@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_frame_ends_its_connection_and_no_other(cluster: EmbeddedCluster, listener: str, name: str) -> None:
    with Wire(address(cluster, listener)) as other, Wire(address(cluster, listener)) as wire:
        with suppress(OSError):  # the rest may come too late
            wire.socket.sendall(MALFORMED[name])
        assert wire.is_ended()
        assert other.ask(105 if listener == "namesrv" else 30, {"topic": "t", "queueId": "0"})[0]["flag"] == 1


@pytest.mark.parametrize("code", [-1, 0, 9999, 32_767, 65_536, 200_050, 2**31 - 1, -(2**31)])
def test_unknown_codes_are_said_to_be_so(cluster: EmbeddedCluster, code: int) -> None:
    with Wire(address(cluster, "broker")) as wire:
        header, _ = wire.ask(code)
        assert (header["code"], header["remark"]) == (3, f" request type {code} not supported")


def send_all(cluster: EmbeddedCluster, server: str, frames: Iterable[bytes]) -> None:
    """Sends the frames, and waits until a request behind them is answered."""
    last = json_frame(*((30, {"topic": "t", "queueId": "0"}) if server == "broker" else (206,)), opaque=-1)
    with Wire(address(cluster, server)) as wire:
        for frame in frames:
            wire.socket.sendall(frame)
        wire.socket.sendall(last)
        while (answer := wire.answer()[0])["opaque"] != -1:
            assert answer["flag"] & 1 or answer["code"] == 40, answer


@pytest.mark.parametrize("request_", one_of_each(), ids=lambda each: f"{each.server}-{each.name}")
def test_each_field_may_hold_anything(cluster: EmbeddedCluster, request_: Recorded) -> None:
    header = json.loads(request_.header) | {"opaque": 1}
    fields = header.get("extFields") or {}

    def frames() -> Iterator[bytes]:
        yield framed(json.dumps(header).encode(), request_.body)
        for name in fields:
            for value in [*NASTY, None, 5, True, {"a": 1}, [1, "x"]]:
                changed = header | {"extFields": fields | {name: value}}
                yield framed(json.dumps(changed).encode(), request_.body)
            missing = {other: value for other, value in fields.items() if other != name}
            yield framed(json.dumps(header | {"extFields": missing}).encode(), request_.body)

    send_all(cluster, request_.server, frames())


HOSTILE = ["../x", "../../x", "/etc/x", "%RETRY%../x", "%DLQ%../x", "a/../../x", "a\0b", "..", ".", "", "n" * 10_000]


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_is_written_outside_of_the_stores(cluster: EmbeddedCluster, name: str, inner: Path) -> None:
    group = json.dumps({"groupName": name, "retryQueueNums": 1}).encode()
    topic = {"topic": name, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6"}
    with Wire(address(cluster, "broker")) as wire:
        answers = [
            wire.ask(310, send_fields(name), b"x"),
            wire.ask(310, send_fields(f"%RETRY%{name}"), b"x"),
            wire.ask(310, send_fields("t", properties=f"INNER_MULTI_DISPATCH\x01%LMQ%{name}"), b"x"),
            wire.ask(11, pull_fields(name, name)),
            wire.ask(11, pull_fields("sound", name)),
            wire.ask(15, {"topic": name, "consumerGroup": name, "queueId": "0", "commitOffset": "1"}),
            wire.ask(17, topic | {"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}),
            wire.ask(30, {"topic": name, "queueId": "0"}),
            wire.ask(200, body=group),
            wire.ask(321, {"topic": name, "queueId": "0", "index": "0", "count": "1"}),
        ]
        if name:
            assert answers[0][0]["code"] in {1, 13}, answers[0]
        cluster.brokers[0].state.persist()
        wire.ask(215, {"topic": name})
        wire.ask(207, {"groupName": name})
    assert [path.name for path in inner.parent.iterdir()] == ["inner"]
    assert [path.name for path in inner.iterdir()] == ["store"]
    queues = inner / "store" / "consumequeue"
    assert all(
        set(path.name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-%|")
        for path in queues.iterdir()
    )


def test_answers_that_nobody_waits_for_are_dropped(cluster: EmbeddedCluster) -> None:
    with Wire(address(cluster, "broker")) as wire:
        for opaque in (*range(-5, 2000), 2**31 - 1, -(2**31)):
            wire.socket.sendall(json_frame(0, {"x": "y"}, b"body", flag=1, opaque=opaque))
            wire.socket.sendall(json_frame(40, flag=3, opaque=opaque))
        assert wire.ask(30, {"topic": "t", "queueId": "0"})[0]["code"] == 0


def test_who_reads_nothing_and_who_sends_single_bytes_keep_nobody_waiting(cluster: EmbeddedCluster) -> None:
    with Wire(address(cluster, "broker")) as wire:
        for _ in range(60):
            assert wire.ask(310, send_fields("much"), bytes(100_000))[0]["code"] == 0
    with ExitStack() as stack:
        deaf = [stack.enter_context(Wire(address(cluster, "broker"))) for _ in range(10)]
        for wire in deaf:
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            wire.socket.settimeout(0.05)
            with suppress(OSError):
                for opaque in range(100):
                    wire.socket.sendall(json_frame(11, pull_fields("much", "g"), opaque=opaque))
                    wire.socket.sendall(json_frame(28, opaque=opaque))
        slow = [stack.enter_context(Wire(address(cluster, listener))) for listener in LISTENERS * 10]
        frame = json_frame(30, {"topic": "t", "queueId": "0"})
        for byte in frame[:3]:
            for wire in slow:
                wire.socket.sendall(bytes([byte]))
            serves(cluster)
        slow[0].socket.sendall(frame[3:])
        assert slow[0].answer()[0]["code"] == 0


def test_a_thousand_connections_that_say_nothing_are_borne(cluster: EmbeddedCluster) -> None:
    with ExitStack() as stack:
        for _ in range(300):
            for listener in LISTENERS:
                stack.enter_context(Wire(address(cluster, listener)))
        serves(cluster)


def test_pulls_that_wait_for_ever_cost_little(cluster: EmbeddedCluster) -> None:
    before = own_memory()
    with Wire(address(cluster, "broker")) as wire:
        fields = pull_fields("sound", "g", queue_id=1, offset=0, sys_flag=6) | {"suspendTimeoutMillis": str(2**63 - 1)}
        for opaque in range(200):
            wire.socket.sendall(json_frame(11, fields, bytes(1 << 20), opaque=opaque))
        plane = cluster.brokers[0].state.data_plane
        until(lambda: plane.parked_pulls == 200)
        assert own_memory() - before < 100 << 20

    def are_gone() -> bool:
        plane.check_parked_pulls()
        return plane.parked_pulls == 0

    until(are_gone)
