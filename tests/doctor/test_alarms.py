"""Alarms are raised when something goes wrong, told everywhere, and cleared when it is right again."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from rmqfast import Admin, ClientConfig, EmbeddedCluster, Message, MessageQueue, Producer
from rmqfast.doctor import AlarmChange, AlarmMonitor, AlarmRules
from rmqfast.errors import ArgumentError, RmqError
from rmqfast.remoting import Request
from tests.admin.members import online, wants
from tests.cli.command_line import COMMAND
from tests.exporter.conftest import hide_details
from tests.proxy import Proxy
from tests.waiting import until

from .examined import GROUP, TOPIC, cluster_of, old_backlog

QUEUES = [MessageQueue(TOPIC, "broker-a", number) for number in range(2)]
#: Seconds between two looks of a test.
SOON = 0.05


class Board:
    """The changes that a monitor told."""

    def __init__(self) -> None:
        self.changes: list[AlarmChange] = []

    def names(self, *, is_raised: bool = True) -> list[str]:
        return [each.alarm.finding.name for each in self.changes if each.is_raised is is_raised]

    def has(self, name: str, *, is_raised: bool = True) -> bool:
        return name in self.names(is_raised=is_raised)

    def find(self, name: str) -> AlarmChange:
        return next(each for each in self.changes if each.alarm.finding.name == name)


@contextmanager
def watched(cluster: EmbeddedCluster, **more: Any) -> Iterator[tuple[AlarmMonitor, Board]]:
    board = Board()
    config = ClientConfig(name_server=cluster.name_server)
    with AlarmMonitor(config, interval=SOON, on_change=board.changes.append, **more) as monitor:
        yield monitor, board


@pytest.mark.parametrize("check", [None, hide_details], ids=["ours", "as RocketMQ's"])
def test_a_conflict_is_raised_with_its_names_and_cleared(
    check: Callable[[Request], None] | None, caplog: pytest.LogCaptureFixture
) -> None:
    with cluster_of(check=check) as cluster, Admin(name_server=cluster.name_server) as admin:
        admin.create_topic(TOPIC, queues=2)
        with watched(cluster) as (monitor, board):
            assert board.changes == []
            with online(cluster.name_server, "C1", GROUP, [wants(TOPIC, "TagA", 1)], QUEUES[:1]):
                with online(cluster.name_server, "C2", GROUP, [wants(TOPIC, "TagB", 2)], QUEUES[1:]):
                    until(lambda: board.has("subscription-conflict"))
                    alarm = monitor.alarms[0]
                until(lambda: board.has("subscription-conflict", is_raised=False))
            until(lambda: monitor.alarms == ())
    assert "10.0.0.1@C1 wants TagA, 10.0.0.1@C2 wants TagB" in alarm.finding.evidence
    told = [record.message.split()[0] for record in caplog.records if record.name == "rmqfast.alarms"]
    assert told == ["raised", "cleared"]


def test_limits_of_lag_and_a_group_that_does_not_move(tmp_path: Path) -> None:
    rules = AlarmRules(lag=1, lag_seconds=300, stalled_seconds=0.2)
    with (
        old_backlog(tmp_path, 600) as cluster,
        Admin(name_server=cluster.name_server) as admin,
        online(cluster.name_server, "C1", GROUP, [wants(TOPIC, "*")], QUEUES),
        watched(cluster, rules=rules) as (_, board),
    ):
        until(lambda: {"lag", "time-lag", "group-stalled"} <= set(board.names()))
        for queue in QUEUES:
            admin.offsets.reset(GROUP, queue, 1, force=True)
        until(lambda: {"lag", "time-lag", "group-stalled"} <= set(board.names(is_raised=False)))
    assert board.find("lag").alarm.finding.subject == f"group {GROUP} in {TOPIC}"
    assert board.find("lag").alarm.finding.evidence == "2 messages are unread, and 1 may be"
    assert board.find("time-lag").alarm.finding.evidence.startswith("the oldest unread message is 10 min")
    assert board.find("time-lag").alarm.finding.evidence.endswith(" old, and 5 min are allowed")


def test_a_group_within_its_limits_raises_none(tmp_path: Path) -> None:
    with (
        old_backlog(tmp_path, 600) as cluster,
        online(cluster.name_server, "C1", GROUP, [wants(TOPIC, "*")], QUEUES),
        watched(cluster, rules=AlarmRules(lag=2, lag_seconds=6000)) as (monitor, board),
    ):
        assert monitor.alarms == ()
    assert board.changes == []


def test_a_backlog_that_expires_and_a_group_offline(tmp_path: Path) -> None:
    with old_backlog(tmp_path, 3000, {"fileReservedTime": "1"}) as cluster, watched(cluster) as (monitor, _):
        assert [alarm.finding.name for alarm in monitor.alarms] == ["backlog-expires", "group-offline"]


def test_a_full_disk() -> None:
    with cluster_of({"diskMaxUsedSpaceRatio": "1"}) as cluster, watched(cluster) as (monitor, _):
        assert [alarm.finding.name for alarm in monitor.alarms] == ["disk-full"]


def test_a_dead_letter() -> None:
    with (
        cluster_of({"autoCreateTopicEnable": "true"}) as cluster,
        watched(cluster) as (monitor, board),
        Producer("doctors", name_server=cluster.name_server) as producer,
    ):
        assert monitor.alarms == ()
        producer.send(Message(f"%DLQ%{GROUP}", b"x"))
        until(lambda: board.has("dead-letters"))
    assert board.find("dead-letters").alarm.finding.subject == f"group {GROUP}"


def test_a_topic_that_gets_no_message() -> None:
    rules = AlarmRules(silent_seconds={TOPIC: 0.5, "missing": 0.5})
    with (
        cluster_of() as cluster,
        Admin(name_server=cluster.name_server) as admin,
        Producer("doctors", name_server=cluster.name_server) as producer,
    ):
        admin.create_topic(TOPIC, queues=1)
        producer.send(Message(TOPIC, b"x"))
        with watched(cluster, rules=rules) as (_, board):
            until(lambda: board.has("topic-silent"))
            producer.send(Message(TOPIC, b"y"))
            until(lambda: board.has("topic-silent", is_raised=False))
    assert {each.alarm.finding.subject for each in board.changes} == {f"topic {TOPIC}"}


def test_a_broker_that_does_not_answer_clears_no_alarm_of_its_groups() -> None:
    with (
        cluster_of(brokers=2) as cluster,
        Admin(name_server=cluster.name_server) as admin,
        Proxy(cluster.brokers[1].address) as proxy,
    ):
        admin.create_topic(TOPIC, queues=1, broker_names=["broker-b"])
        admin.create_group(GROUP)
        with Producer("doctors", name_server=cluster.name_server) as producer:
            producer.send(Message(TOPIC, b"x"))
        admin.offsets.reset(GROUP, MessageQueue(TOPIC, "broker-b", 0), 0, force=True)
        there = cluster.brokers[1].address
        config = ClientConfig(
            name_server=cluster.name_server,
            translate_address=lambda address: proxy.address if address == there else address,
        )
        board = Board()
        with AlarmMonitor(config, interval=SOON, on_change=board.changes.append, timeout=1) as monitor:
            assert board.names() == ["group-offline"]
            proxy.down()
            until(lambda: board.has("broker-unreachable"))
            looks = len(board.changes)
            proxy.up()
            until(lambda: board.has("broker-unreachable", is_raised=False))
            assert [alarm.finding.name for alarm in monitor.alarms] == ["group-offline"]
    assert looks == 2
    assert board.names(is_raised=False) == ["broker-unreachable"]


class Receiver:
    """Takes what is posted, after it has refused so often, with a status."""

    def __init__(self, refusals: int = 0, status: int = 503) -> None:
        self.posted: list[dict[str, Any]] = []
        self._refusals, self._status = refusals, status
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status := receiver.take(body))
                if status == 302:
                    self.send_header("Location", receiver.url)
                self.end_headers()

            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def take(self, body: bytes) -> int:
        if self._refusals:
            self._refusals -= 1
            return self._status
        self.posted.append(json.loads(body))
        return 200

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.mark.parametrize("status", [503, 302], ids=["refuses", "leads elsewhere"])
def test_a_webhook_gets_each_change_even_if_it_refuses_at_first(status: int) -> None:
    with (
        cluster_of() as cluster,
        Admin(name_server=cluster.name_server) as admin,
        Receiver(refusals=1, status=status) as receiver,
    ):
        admin.create_topic(TOPIC, queues=2)
        with watched(cluster, webhook=receiver.url):
            with (
                online(cluster.name_server, "C1", GROUP, [wants(TOPIC, "TagA", 1)], QUEUES[:1]),
                online(cluster.name_server, "C2", GROUP, [wants(TOPIC, "TagB", 2)], QUEUES[1:]),
            ):
                until(lambda: receiver.posted)
            until(lambda: len(receiver.posted) == 2)
        raised, cleared = receiver.posted
        assert (raised["event"], cleared["event"]) == ("raised", "cleared")
        assert raised["cluster"] == cluster.name_server
    assert (raised["name"], raised["subject"]) == ("subscription-conflict", f"group {GROUP}")
    assert raised["text"] == f"raised {raised['name']}: {raised['subject']}: {raised['evidence']}"
    assert raised["since"] == cleared["since"] <= cleared["at"]


def test_a_webhook_that_takes_nothing_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with (
        cluster_of({"diskMaxUsedSpaceRatio": "1"}) as cluster,
        watched(cluster, webhook="http://127.0.0.1:1/secret-path"),
    ):
        until(lambda: "does not take an alarm" in caplog.text)
    assert "not posted to http://127.0.0.1: raised disk-full: broker broker-a" in caplog.text
    assert "secret-path" not in caplog.text


def test_a_callback_that_fails_keeps_no_other_change_from_being_told(tmp_path: Path) -> None:
    told: list[str] = []

    def fail(change: AlarmChange) -> None:
        told.append(change.alarm.finding.name)
        raise RuntimeError

    with old_backlog(tmp_path, 3000, {"fileReservedTime": "1"}) as cluster:
        config = ClientConfig(name_server=cluster.name_server)
        with AlarmMonitor(config, on_change=fail) as monitor:
            assert len(monitor.alarms) == 2
    assert sorted(told) == ["backlog-expires", "group-offline"]


def test_conflicts_in_several_topics_are_one_alarm_that_names_them_all() -> None:
    with cluster_of() as cluster, Admin(name_server=cluster.name_server) as admin:
        for topic in (TOPIC, "another"):
            admin.create_topic(topic, queues=1)
        own = [[wants(TOPIC, tag, version), wants("another", tag, version)] for version, tag in ((1, "A"), (2, "B"))]
        with (
            online(cluster.name_server, "C1", GROUP, own[0]),
            online(cluster.name_server, "C2", GROUP, own[1]),
            watched(cluster) as (monitor, _),
        ):
            (alarm,) = monitor.alarms
    assert "in another: " in alarm.finding.evidence
    assert f"in {TOPIC}: " in alarm.finding.evidence


@pytest.mark.parametrize("url", ["ftp://host/x", "host:80", "http://", "file:///etc/passwd"])
def test_a_webhook_has_a_url(url: str) -> None:
    with pytest.raises(ArgumentError, match="webhook: expected http://host/path"):
        AlarmMonitor(ClientConfig(name_server="127.0.0.1:9876"), webhook=url)


def test_no_name_server_is_an_error_at_the_start() -> None:
    with pytest.raises(RmqError), AlarmMonitor(ClientConfig(name_server="127.0.0.1:1"), timeout=1):
        pass


def test_the_command_prints_changes_until_it_is_ended() -> None:
    with cluster_of({"diskMaxUsedSpaceRatio": "1"}) as cluster:
        command = [*COMMAND, "alarms", "-n", cluster.name_server, "-o", "jsonl"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            assert process.stderr is not None
            assert process.stderr.readline().startswith("ready: 1 alarms; looks again every ")
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "stopped\n")
    assert (told["event"], told["name"]) == ("raised", "disk-full")
