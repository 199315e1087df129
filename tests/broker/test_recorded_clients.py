"""What real Java clients sent a real broker, sent to the control plane: it answers and notifies as that one did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rmqfast.remoting import Request, Response
from rmqfast.remoting.fastjson import decode
from rmqfast.store.config import TopicConfig

from .client_control import Control
from .client_doubles import Line, QueuesByHand
from .interop.replay import recording

#: Requests that the control plane of clients answers; the others of the recording are not its business.
OURS = {34, 35, 38, 41, 42, 46, 203, 204, 222, 307, 308, 314, 328}
COMMIT_OFFSET = 1


@dataclass
class Replay:
    """A recording, played to the control plane request by request."""

    control: Control
    lines: dict[int, Line] = field(default_factory=dict)
    answered: Counter[int] = field(default_factory=Counter)
    notified: list[tuple[int, str]] = field(default_factory=list)

    def play(self, row: dict[str, Any]) -> None:
        header, code = row["requestHeader"], row["code"]
        fields = header.get("extFields") or {}
        if code == 15 or (code == 11 and int(fields["sysFlag"]) & COMMIT_OFFSET):
            place = fields["consumerGroup"], fields["topic"], int(fields["queueId"])
            self.control.tables.commit_offset(*place, int(fields["commitOffset"]))
        if code in OURS:
            self._ask(row, header, fields)

    def _ask(self, row: dict[str, Any], header: dict[str, Any], fields: dict[str, str]) -> None:
        line = self.lines.setdefault(row["conn"], Line(f"127.0.0.1:{row['conn']}"))
        if row["code"] == 307:
            (asked,) = [conn for conn, other in self.lines.items() if other is self._client(fields)]
            self.lines[asked].answer = lambda: _recorded_answer(row)
        asked_for = Request(
            row["code"], fields, _body(row["request"]), line, None, header["version"], header["language"], row["oneway"]
        )
        answer = self.control.answer(asked_for)
        self.notified += [(conn, group) for conn, other in self.lines.items() for group in other.notified()]
        if not row["oneway"]:
            _compare(row, answer)
            self.answered[row["code"]] += 1

    def _client(self, fields: dict[str, str]) -> object:
        client = self.control.consumers.client(fields["consumerGroup"], fields["clientId"])
        return client and client.channel


def _compare(row: dict[str, Any], answer: Response) -> None:
    recorded, where = row["responseHeader"], (row["step"], row["name"], row["requestHeader"])
    assert answer.code == row["responseCode"], where
    assert answer.remark == recorded.get("remark"), where
    assert dict(answer.ext_fields or {}) == (recorded.get("extFields") or {}), where
    if row["code"] == 203 and answer.code == 0:
        assert _masked(answer.body) == _masked(_body(row["response"])), where
    else:
        assert answer.body == _body(row["response"]), where


def _masked(body: bytes) -> Any:
    """The connections of a group without the port that its client had by chance."""
    value = decode(body)
    for connection in value["connectionSet"]:
        assert connection.pop("clientAddr").startswith("127.0.0.1:")
    return value, list(value)


def _recorded_answer(row: dict[str, Any]) -> Response:
    header = row["responseHeader"]
    return Response(header["code"], header.get("remark"), header.get("extFields"), _body(row["response"]))


def _body(frame: str) -> bytes:
    data = bytes.fromhex(frame)
    return data[8 + int.from_bytes(data[5:8], "big") :]


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    control = Control(tmp_path, QueuesByHand({}))
    control.topics["wire"] = TopicConfig(topic_name="wire", read_queue_nums=4, write_queue_nums=4)
    return Replay(control)


def _rows(version: str = "4.9.4") -> list[dict[str, Any]]:
    return [row for row in recording(version) if row["server"] == "broker"]


def _in_order(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Requests of clients in the order sent: rows are in that of the answers.

    A broker notifies before it answers a heartbeat, so that comes where the notice is; one was not recorded: the
    client's next one is the same.
    """
    for at, row in enumerate(rows):
        if row["direction"] == "client-to-server":
            yield row
        elif row["code"] == 40:
            yield next(other for other in rows[at:] if (other["conn"], other["code"]) == (row["conn"], 34))


def _notices(rows: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(row["conn"], row["requestHeader"]["extFields"]["consumerGroup"]) for row in rows if row["code"] == 40]


def test_every_answer_and_every_notice_is_the_recorded_one(replay: Replay) -> None:
    rows = _rows()
    for row in _in_order(rows):
        replay.play(row)
    assert set(replay.answered) == {34, 35, 38, 41, 42, 46, 203, 222, 307}
    assert sum(replay.answered.values()) > 120
    assert replay.notified == _notices(rows)
    assert len(replay.notified) == 7


@pytest.mark.parametrize("code", [34, 35, 38, 41, 42, 46])
def test_clients_of_5_3_3_get_the_answer_that_they_got_from_their_own_broker(replay: Replay, code: int) -> None:
    compared = 0
    for row in _in_order(_rows("5.3.3")):
        if row["code"] not in {34, 35, 38, 41, 42, 46}:
            continue
        header = row["requestHeader"]
        line = replay.lines.setdefault(row["conn"], Line(f"127.0.0.1:{row['conn']}"))
        fields = header.get("extFields") or {}
        answer = replay.control.answer(
            Request(row["code"], fields, _body(row["request"]), line, None, header["version"])
        )
        if row["code"] == code:
            assert (answer.code, answer.body) == (row["responseCode"], _body(row["response"])), header
            compared += 1
    assert compared
