"""Sends and pulls that real clients sent a real broker, sent to ours: equal answers, and equal bytes in the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from rmqfast import EmbeddedCluster
from tests import golden_stores
from tests.wire_traffic import Exchange, exchanges

from .live_server import SMALL, Wire, pull_fields, send_fields
from .mutations import framed
from .pulled import body_of, records_of

BATCH_END = b"\x02CLUSTER\x01DefaultCluster\x02WAIT\x01true"
#: What differs by chance in a record of an IPv4 peer and an IPv4 broker: ports, and the time when it was stored.
BORN_PORT, STORED = slice(52, 56), slice(56, 72)
#: Further, where a record is sent anew: its offsets, and the time that its batch was made at.
OFFSETS, BORN = slice(20, 36), slice(40, 56)


@pytest.fixture
def wire() -> Iterator[Wire]:
    with (
        EmbeddedCluster(config=SMALL | {"brokerName": "broker-a"}) as cluster,
        Wire(cluster.brokers[0].address) as wire,
    ):
        yield wire


def rows(code: int, *steps: str) -> list[Exchange]:
    return [row for row in exchanges("4.9.4") if row.code == code and row.serialize == "JSON" and row.step in steps]


def played(wire: Wire, row: Exchange) -> tuple[dict[str, Any], bytes]:
    """The answer to a request that was recorded, whose number and headers are those of the recording."""
    wire.socket.sendall(framed(json.dumps(row.request_header).encode(), row.request_body))
    header, body = wire.answer()
    recorded = row.response_header
    assert recorded is not None
    assert {**header, "extFields": masked_ids(header)} == {**recorded, "extFields": masked_ids(recorded)}, row
    return header, body


def masked_ids(header: dict[str, Any]) -> dict[str, str]:
    """Header fields whose message ids tell address and offset, but not the port."""
    fields = dict(header.get("extFields") or {})
    if "msgId" in fields:
        fields["msgId"] = ",".join(text[:8] + text[16:] for text in fields["msgId"].split(","))
    return fields


def without(record: bytes, *parts: slice) -> bytes:
    masked = bytearray(record)
    for part in parts:
        masked[part] = bytes(part.stop - part.start)
    return bytes(masked)


def test_recorded_sends_are_answered_alike_and_stored_in_equal_bytes(wire: Wire) -> None:
    played(wire, rows(17, "updateTopic")[0])
    sends = [*rows(310, "send"), *rows(320, "batch"), *rows(310, "delay")]
    assert len(sends) == 6
    for row in sends:
        played(wire, row)
    pulls = rows(11, "lite", "pull")
    assert len(pulls) == 8
    compared = 0
    for row in pulls:
        queue_id = row.request_header["extFields"]["queueId"]
        _, body = wire.ask(11, pull_fields("wire", "other", int(queue_id)))
        if queue_id in {"2", "3"}:
            # nothing came to these two later
            assert played(wire, row)[1] == body
        # what the recording has beyond these came in ways of its own: delayed, in transactions
        ours, theirs = records_of(body), records_of(row.response_body)
        for our, their in zip(ours, theirs, strict=False):
            assert without(our, BORN_PORT, STORED) == without(their, BORN_PORT, STORED), row
        compared += len(ours)
    assert compared == 2 * 7


def test_recorded_pulls_of_nothing_are_answered_alike(wire: Wire) -> None:
    played(wire, rows(17, "updateTopic")[0])
    for row in rows(11, "lite", "pull"):
        fields = row.request_header["extFields"]
        wire.socket.sendall(framed(json.dumps(row.request_header | {"extFields": fields | {"sysFlag": "4"}}).encode()))
        header, body = wire.answer()
        recorded = row.response_header
        assert recorded is not None
        assert (header["code"], header["remark"], body) == (19, "NO_MESSAGE_IN_QUEUE", b"")
        assert set(header["extFields"]) == set(recorded["extFields"])


def test_a_batch_is_stored_as_a_real_broker_stored_it(wire: Wire, golden_store: Callable[[str], Path]) -> None:
    data = b"".join(path.read_bytes() for path in sorted((golden_store("basic-4.9.4") / "commitlog").iterdir()))
    rows = golden_stores.expected_rows("basic-4.9.4")
    batched = (row for row in rows if record(data, row).endswith(BATCH_END) and row["sys_flag"] == 0)
    compared = 0
    for row in islice(batched, 300):
        real = record(data, row)
        body = body_of(real)
        properties = real[88 + len(body) + 1 + len(row["topic"]) + 2 : -len(BATCH_END)]
        parts = [22 + len(body) + len(properties), 0, 0, row["flag"], len(body)]
        message = b"".join((part % (1 << 32)).to_bytes(4, "big") for part in parts)
        message += body + len(properties).to_bytes(2, "big") + properties
        fields = send_fields(row["topic"], row["queue_id"], "WAIT\x01true") | {"d": "8"}
        header, _ = wire.ask(320, fields, message)
        assert header["code"] == 0, header
        offset = int(header["extFields"]["queueOffset"])
        (ours,) = records_of(wire.ask(11, pull_fields(row["topic"], "g", row["queue_id"], offset))[1])
        assert without(ours, OFFSETS, BORN, STORED) == without(real, OFFSETS, BORN, STORED)
        compared += 1
    assert compared == 300


def record(data: bytes, row: dict[str, Any]) -> bytes:
    return data[row["physical_offset"] : row["physical_offset"] + row["store_size"]]
