"""Interpreters that end while a client runs, processes that fork, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import rmqfast
from rmqfast import EmbeddedCluster
from tests.embedded.client import send
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]
#: A consumer and a producer in a process of their own; how it ends is added below.
PREAMBLE = """
import logging, os, random, signal, sys, threading, time
logging.basicConfig(level=logging.ERROR)  # that nobody answers yet is no fault; a thread that fails would show
from rmqfast.client.instance import ClientConfig, ClientInstance, exits
from rmqfast.errors import ForkError
from tests.client.instance.doubles import FakeConsumer, FakeProducer
from tests.waiting import until

exits.LONGEST = 3600.0  # what would only end because its time is over hangs, and fails the test

def started(name="i"):
    config = ClientConfig(name_server=sys.argv[1], instance_name=f"{os.getpid()}-{name}", heartbeat_interval=0.05,
                          poll_name_server_interval=0.05, persist_offset_interval=0.02, rebalance_interval=0.01)
    instance = ClientInstance.of(config, config.client_id())
    consumer = FakeConsumer("cg", "t")
    consumer.on_rebalance = lambda: instance.find_consumer_ids("t", "cg")
    instance.register_consumer("cg", consumer)
    instance.register_producer("pg", FakeProducer("t"))
    instance.start()
    return instance

instance = started()
time.sleep(random.random() * float(sys.argv[2]))
"""
#: Ways in which a process ends, and with which code.
ENDINGS = {
    "falls off its end": ("pass", 0),
    "calls sys.exit": ("sys.exit(3)", 3),
    "raises": ("raise SystemExit(4)", 4),
    "has two instances": ("other = started('other')", 0),
    "ends while a thread asks": (
        "threading.Thread(target=lambda: [instance.send_heartbeats() for _ in range(1000)], daemon=True).start()",
        0,
    ),
    "has no references left": ("del instance", 0),
    "is interrupted": ("signal.signal(signal.SIGINT, lambda *_: sys.exit(5)); os.kill(os.getpid(), signal.SIGINT)", 5),
}


@pytest.fixture(scope="module")
def name_server() -> Iterator[str]:
    with EmbeddedCluster() as cluster:
        send(cluster.brokers[0].address, "t", b"x")
        yield cluster.name_server


def child(script: str, *arguments: str) -> subprocess.Popen[str]:
    """An interpreter that runs a client."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(rmqfast.__file__).parents[1]), str(ROOT)])}
    command = [sys.executable, "-c", PREAMBLE + textwrap.dedent(script), *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment, cwd=ROOT)


def ended(process: subprocess.Popen[str], seconds: float = 2 * PATIENCE) -> tuple[int, str, str]:
    """Code, output and complaints of a child; one that hangs is killed, and fails the test."""
    try:
        output, complaints = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        output, complaints = process.communicate()
        pytest.fail(f"it hangs: {output}{complaints}")
    return process.returncode, output, complaints


def end_many(name_server: str, times: int, at_once: int = 3) -> None:
    """Ends processes in all ways, some at the same time."""
    ways = list(ENDINGS.values())
    running: list[tuple[subprocess.Popen[str], int]] = []
    for number in range(times):
        script, code = ways[number % len(ways)]
        # a dozen at the very beginning, the others when timers and connections are busy
        running.append((child(script, name_server, "0" if number % 5 == 0 else "0.15"), code))
        if len(running) == at_once or number == times - 1:
            for process, expected in running:
                assert ended(process) == (expected, "", "")
            running.clear()


def test_interpreters_end_while_a_client_runs(name_server: str) -> None:
    end_many(name_server, len(ENDINGS))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_thousand_interpreters_end_while_a_client_runs(name_server: str) -> None:
    end_many(name_server, 1000)


def test_offsets_are_stored_when_the_interpreter_ends(name_server: str) -> None:
    script = """
    consumer = instance.consumer("cg")
    instance.scheduler.stop()
    consumer.persist_consumer_offset = lambda: print("stored", flush=True)
    """
    assert ended(child(script, name_server, "0.1")) == (0, "stored\n", "")


def test_an_interpreter_ends_where_nobody_answers() -> None:
    assert ended(child("", "127.0.0.1:1", "0.1")) == (0, "", "")


def test_a_fork_cannot_use_the_client_of_its_parent_and_can_make_its_own(name_server: str) -> None:
    script = """
    instance.update_route("t")
    child = os.fork()
    if child == 0:
        for call in (instance.start, instance.send_heartbeats, lambda: instance.update_route("t"), instance.rebalance,
                     lambda: instance.api.topic_route("t"), lambda: instance.find_consumer_ids("t", "cg")):
            try:
                call()
                print("no ForkError from", call)
            except ForkError:
                pass
        instance.release()  # the parent's clients run on
        own = started("own")
        assert own is not instance
        own.update_route("t")
        until(own.send_heartbeats)
        print("child", own.routes.get("t") is not None, flush=True)
        own.scheduler.stop()
        own.consumer("cg").persist_consumer_offset = lambda: print("child stored", flush=True)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    until(instance.send_heartbeats)
    print("parent", instance.find_consumer_ids("t", "cg") is not None)
    """
    assert ended(child(script, name_server, "0")) == (0, "child True\nchild stored\nparent True\n", "")


def test_ctrl_c_ends_a_call_that_waits(name_server: str) -> None:
    script = """
    import socket
    deaf = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{deaf.getsockname()[1]}"

    def hear():
        connection, _ = deaf.accept()
        connection.recv(1)
        print("asked", flush=True)
        time.sleep(3600)

    threading.Thread(target=hear, daemon=True).start()
    try:
        instance.api.ask(address, 38, {"consumerGroup": "cg"}, timeout=3600)
    except KeyboardInterrupt:
        print("interrupted")
    """
    process = child(script, name_server, "0")
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGINT)
    assert ended(process) == (0, "interrupted\n", "")
