"""What only the blocking producer does: callbacks on threads, a wait that Ctrl-C ends, a fork that has no producer."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Iterator

import pytest

from rmqfast import EmbeddedCluster, Message, open_store
from rmqfast.client.producer import Producer, ProducerOptions, SendContext, SendStatus
from rmqfast.errors import ForkError, RemotingTimeoutError
from tests.client.pull.waiters import check_ends_by_ctrl_c
from tests.proxy import gated
from tests.waiting import PATIENCE, until


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


def test_more_than_may_be_on_its_way_waits_and_is_then_refused(cluster: EmbeddedCluster) -> None:
    options, go, ended = ProducerOptions(max_in_flight=1), threading.Event(), list[object]()

    def slow(end: object) -> None:
        ended.append(end)
        go.wait(PATIENCE)

    with gated(cluster) as (gate, config), Producer("pressed", config=config, options=options) as producer:
        producer.send(Message("pressed", b"0"))
        gate.shut()
        producer.send_async(Message("pressed", b"1"), slow, timeout=PATIENCE)
        with pytest.raises(RemotingTimeoutError, match="semaphoreAsync"):
            producer.send_async(Message("pressed", b"2"), slow, timeout=0.05)
        waits = threading.Thread(target=producer.send_async, args=(Message("pressed", b"3"), slow, None, PATIENCE))
        waits.start()
        gate.open()
        waits.join()
        until(lambda: len(ended) == 2)
        # a callback holds nothing back: its send has ended
        producer.send_async(Message("pressed", b"4"), slow, timeout=PATIENCE)
        go.set()
    until(lambda: len(ended) == 3)
    rows = open_store(cluster.brokers[0].state.root).scan("pressed").to_arrow().to_pylist()
    assert {row["body"] for row in rows} == {b"0", b"1", b"3", b"4"}


def test_a_fork_says_that_it_has_no_producer(cluster: EmbeddedCluster) -> None:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        try:
            producer.send(Message("forked", b"x"))
        except ForkError as error:
            sender.send(str(error))
        else:
            sender.send("sent")

    with Producer("forks", name_server=cluster.name_server) as producer:
        producer.send(Message("forked", b"x"))
        process = context.Process(target=child)
        process.start()
        assert receiver.poll(PATIENCE)
        assert "fork of the process" in receiver.recv()
        process.join(PATIENCE)


def test_ctrl_c_ends_a_send_that_waits_for_its_broker(cluster: EmbeddedCluster) -> None:
    with gated(cluster) as (gate, config), Producer("interrupted", config=config) as producer:
        producer.send(Message("interrupted", b"first"))
        hook = _Interrupts()
        producer.register_send_hook(hook)
        gate.shut()
        with pytest.raises(KeyboardInterrupt):
            producer.send(Message("interrupted", b"second"), timeout=PATIENCE)
        gate.open()
        hook.is_due = False
        assert producer.send(Message("interrupted", b"third")).status is SendStatus.SEND_OK


def test_ctrl_c_while_an_asynchronous_send_connects_leaves_all_room_free(cluster: EmbeddedCluster) -> None:
    with gated(cluster) as (gate, config), Producer("connecting", config=config) as producer:
        producer.send_async(Message("connecting", b"first")).result(PATIENCE)
        gate.crowd()
        until(lambda: not producer.member.instance.connections.is_open(gate.address))
        second = Message("connecting", b"second")
        check_ends_by_ctrl_c(lambda: producer.send_async(second, timeout=PATIENCE), within="send_async")
        assert producer.in_flight == 0
        gate.down()
        gate.up()
        producer.send_async(Message("connecting", b"third")).result(PATIENCE)


class _Interrupts:
    """A hook that has Ctrl-C pressed right before a message goes out, for this thread to see while it waits."""

    name = "interrupts"
    is_due = True

    def before(self, _context: SendContext) -> None:
        if self.is_due:
            threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()

    def after(self, _context: SendContext) -> None:
        """Nothing is to be told."""
