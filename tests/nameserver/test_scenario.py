"""Several brokers and clients: the answers are RocketMQ's, but for the order of its hash tables."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rmqfast.nameserver import NameServer, NamesrvConfig
from tests.broker.client_doubles import Line
from tests.interop import rocketmq
from tests.interop.rocketmq import free_ports
from tests.nameserver.registration import ask
from tests.nameserver.scenario import Answer, RealNameServer, Step, steps
from tests.unordered import unordered
from tests.waiting import until

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "golden" / "nameserver-4.9.4.jsonl.gz"
INTEROP = ROOT / "tests" / "interop"
VERSION = "4.9.4"


class OurNameServer:
    """Ours, without a port."""

    def __init__(self, directory: Path) -> None:
        path = str(directory / "kvConfig.json")
        self._server = NameServer(NamesrvConfig(kv_config_path=path, order_message_enable=True))
        self._connections: dict[int, Line] = {}

    def ask(self, step: Step) -> Answer:
        channel = self._connections.setdefault(step.connection, Line())
        answer = ask(self._server, step.code, step.ext_fields, step.body, version=step.version, channel=channel)
        fields = None if answer.ext_fields is None else dict(answer.ext_fields)
        return Answer(int(answer.code), answer.remark, fields, answer.body.decode())

    def close(self, number: int) -> None:
        if number in self._connections:
            self._server.channel_closed(self._connections.pop(number))


def recorded() -> list[Answer]:
    with gzip.open(RECORDED, "rt") as lines:
        return [Answer.of_json(line) for line in lines]


def compare(ask_one: Callable[[Step], Answer], close: Callable[[int], object], asked: Iterator[Step]) -> int:
    answers = recorded()
    number = 0
    for step in asked:
        if step.code == -1:
            close(step.connection)
        else:
            assert plain(ask_one(step)) == plain(answers[number]), (number, step)
            number += 1
    return number


def plain(answer: Answer) -> tuple[Answer, object]:
    """An answer without the order of its body; no fields are the same as an empty object."""
    body = unordered(answer.body.encode())
    if isinstance(body, dict) and body.get("brokerAddr"):
        body["brokerAddr"] = "that of any broker"
    return replace(answer, ext_fields=answer.ext_fields or None, body=""), body


def test_each_answer_and_the_file_of_texts_are_as_rocketmq_gave_them(tmp_path: Path) -> None:
    ours = OurNameServer(tmp_path)
    assert compare(ours.ask, ours.close, steps()) == len(recorded()) > 1_000
    assert {answer.code for answer in recorded()} == {0, 1, 17, 22}
    written = (tmp_path / "kvConfig.json").read_bytes()
    assert unordered(written) == json.loads(
        '{"configTable":{"ORDER_TOPIC_CONFIG":{"%RETRY%group":"x=1;y","t":"x=1;y","unit_sub":"broker-a:4","c-two":"x=1;y",'
        '"%DLQ%group":""},"ns":{"%RETRY%group":"x=1;y","unit":"broker-a:4","t":"","orders":"","c-two":"broker-a:4",'
        '"TBW102":"broker-a:4"},"中":{"%RETRY%group":"x=1;y","t":"x=1;y","c-one":"broker-a:4","c-two":"x=1;y",'
        '"TBW102":""}}}'
    )


@pytest.mark.long
def test_rocketmq_still_gives_the_recorded_answers(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    running = start_real(tmp_path, port)
    try:
        real = RealNameServer(port)

        def close(number: int) -> None:
            if real.close(number):
                time.sleep(0.1)  # noqa: TID251 - no request of RocketMQ's tells whether it has seen the close

        assert compare(real.ask, close, steps()) == len(recorded())
        real.close_all()
    finally:
        running.terminate()
        running.wait(30)


def start_real(directory: Path, port: int) -> subprocess.Popen[bytes]:
    rocketmq.build(VERSION)
    (directory / "conf").mkdir()
    (directory / "conf" / "logback_namesrv.xml").write_text("<configuration/>")
    conf = directory / "namesrv.conf"
    conf.write_text(f"listenPort={port}\nkvConfigPath={directory}/kvConfig.json\norderMessageEnable=true\n")
    target = INTEROP / "target" / VERSION
    command = ["java", "-Xmx128m", f"-Duser.home={directory}", "-cp", f"{target}/classes:{target}/lib/*"]
    output = directory / "namesrv.out"
    with output.open("wb") as sink:
        running = subprocess.Popen(
            [*command, "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", conf],
            env=os.environ | {"ROCKETMQ_HOME": str(directory)},
            stdout=sink,
            stderr=sink,
        )

    def is_listening() -> bool:
        assert running.poll() is None, output.read_text()[-2000:]
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(is_listening, lambda: output.read_text()[-2000:], patience=180)
    except BaseException:
        running.kill()
        running.wait()
        raise
    return running
