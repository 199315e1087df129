"""What consumers are asked in an administrator's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rmqfast import WritableStore
from rmqfast.errors import RemotingTimeoutError
from rmqfast.message import MessageQueue
from rmqfast.remoting import Later, Response, process
from rmqfast.remoting.fastjson import encode
from rmqfast.remoting.version_names import version_name

from .client_control import Control
from .client_doubles import Line, client, consumer, request

QUEUE = MessageQueue("t", "broker-a", 0)


def _online(control: Control, line: Line, client_id: str = "c", version: int = 401) -> Line:
    control.consumers.register(client(line, client_id, version=version), consumer("g"))
    return line


def _silent() -> Response:
    raise RemotingTimeoutError


def test_a_consumer_tells_of_itself_on_a_thread_that_may_wait(tmp_path: Path) -> None:
    control = Control(tmp_path)
    line = _online(control, Line(answer=lambda: Response(0, "not set any response code", None, b"{}", 399)))
    asked = request(307, consumerGroup="g", clientId="c", jstackEnable=False, AccessKey="k", Signature="s")
    answer = process(control.processors, asked)
    assert isinstance(answer, Later)
    assert line.asked == []
    assert answer.work() == Response(0, "not set any response code", None, b"{}", 399)  # its own version
    assert line.asked == [(307, {"consumerGroup": "g", "clientId": "c", "jstackEnable": "false"}, b"", 10.0)]


_JAVA = "org.apache.rocketmq.remoting.exception"
_TIMEOUT = f"{_JAVA}.RemotingTimeoutException: wait response on the channel <1.1.1.1:22> timeout, 10000(ms)"
_SEND = f"{_JAVA}.RemotingSendRequestException: send request to <1.1.1.1:22> failed"
_TOO_LOW = "The Consumer <c> Version <V3_1_7> too low to finish, please upgrade it to V3_1_8_SNAPSHOT"
_UNKNOWN = "The Consumer Group <g> not exist in this consumer"


@pytest.mark.parametrize(
    ("client_id", "version", "answer", "expected"),
    [
        ("x", 401, Response, (1, "The Consumer <g> <x> not online")),
        ("c", 62, Response, (0, None)),
        ("c", 61, Response, (1, _TOO_LOW)),
        ("c", 401, _silent, (207, f"consumer <g> <c> Timeout: {_TIMEOUT}")),
        ("c", 401, None, (1, f"invoke consumer <g> <c> Exception: {_SEND}")),
        ("c", 401, lambda: Response(1, _UNKNOWN), (1, _UNKNOWN)),
    ],
    ids=["not online", "3.1.8", "3.1.7", "silent", "gone", "refuses"],
)
def test_how_a_call_ends(
    tmp_path: Path,
    client_id: str,
    version: int,
    answer: Callable[..., Response] | None,
    expected: tuple[int, str | None],
) -> None:
    control = Control(tmp_path)
    _online(control, Line("1.1.1.1:22", answer), version=version)
    got = control.answer(request(307, consumerGroup="g", clientId=client_id))
    assert (got.code, got.remark) == expected


def test_a_consumer_gets_the_very_record_of_a_message(tmp_path: Path, offsets_store: WritableStore) -> None:
    control = Control(tmp_path, offsets_store.live)
    line = _online(control, Line(answer=lambda: Response(body=b'{"consumeResult":"CR_SUCCESS"}')))
    message = offsets_store.get("fx_plain", 0, 3, max_messages=1).messages[0]
    fields: dict[str, Any] = {
        "consumerGroup": "g",
        "clientId": "c",
        "msgId": message.offset_msg_id,
        "brokerName": "what it says",
    }
    assert control.answer(request(309, **fields)).body == b'{"consumeResult":"CR_SUCCESS"}'
    ((code, sent, record, timeout),) = line.asked
    assert (code, sent, timeout) == (309, fields | {"brokerName": "broker-a"}, 10.0)
    assert len(record) == message.store_size
    assert int.from_bytes(record[28:36], "big") == message.physical_offset
    assert message.body is not None
    assert message.body in record


@pytest.mark.parametrize(
    ("message_id", "remark"),
    [
        ("0" * 32, "The Consumer <g> <null> not online"),
        ("7F00000100002A9F00000000FFFFFFFF", "can not find message by the offset, 4294967295"),
        ("0" * 40 + "00000000FFFFFFFF", "can not find message by the offset, 4294967295"),
        ("0" * 31, "msgId: expected 32 or 56 hex digits, got '0000000000000000000000000000000'"),
        ("x" * 32, "msgId: expected 32 or 56 hex digits, got "),
        ("../x", "msgId: expected 32 or 56 hex digits, got '../x'"),
    ],
)
def test_a_message_that_cannot_be_consumed_directly(
    tmp_path: Path, offsets_store: WritableStore, message_id: str, remark: str
) -> None:
    control = Control(tmp_path, offsets_store.live)
    answer = control.answer(request(309, consumerGroup="g", msgId=message_id))
    assert answer.code == 1
    assert (answer.remark or "").startswith(remark)


def _told(offset: int) -> Callable[[], Response]:
    return lambda: Response(body=encode({"messageQueueTable": {QUEUE: offset}, "consumerTable": {}}))


def test_consumers_tell_their_offsets(tmp_path: Path) -> None:
    control = Control(tmp_path)
    lines = [_online(control, Line(answer=_told(number)), f"c{number}") for number in range(2)]
    _online(control, Line(answer=None), "gone")
    _online(control, Line(answer=_silent), "silent")
    _online(control, Line(answer=lambda: Response(1, "no")), "refuses")
    _online(control, Line(answer=lambda: Response(body=b'{"messageQueueTable":[1]}')), "odd")
    _online(control, Line(answer=lambda: Response(body=b"{{{")), "broken")
    answer = control.answer(request(223, topic="t", group="g"))
    assert answer.body == encode({"consumerTable": {"c0": {QUEUE: 0}, "c1": {QUEUE: 1}}, "messageQueueTable": {}})
    assert lines[0].asked == [(221, {"topic": "t", "group": "g"}, b"", 5.0)]


def test_one_consumer_tells_its_offsets(tmp_path: Path) -> None:
    control = Control(tmp_path)
    lines = [_online(control, Line(answer=_told(number)), f"c{number}") for number in range(2)]
    answer = control.answer(request(223, topic="t", group="g", clientAddr="c1"))
    assert answer.body == encode({"consumerTable": {"c1": {QUEUE: 1}}, "messageQueueTable": {}})
    assert lines[0].asked == []
    nobody = control.answer(request(223, topic="t", group="g", clientAddr="nobody"))
    assert nobody.body == b'{"consumerTable":{},"messageQueueTable":{}}'


def test_nobody_online_tells_no_offsets(tmp_path: Path) -> None:
    answer = Control(tmp_path).answer(request(223, topic="t", group="g"))
    assert (answer.code, answer.remark) == (1, "No Any Consumer online in the consumer group: [g]")


@pytest.mark.parametrize(("version", "code"), [(28, 0), (27, 1), (0, 1)])
def test_a_consumer_before_3_0_7_cannot_tell_its_offsets(tmp_path: Path, version: int, code: int) -> None:
    control = Control(tmp_path)
    _online(control, Line(answer=_told(1)), version=version)
    answer = control.answer(request(223, topic="t", group="g"))
    assert answer.code == code
    if code:
        assert answer.remark == f"the client does not support this feature. version={version_name(version)}"
