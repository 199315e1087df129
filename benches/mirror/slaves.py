"""The group `slaves`: a slave of RocketMQ behind our master and behind RocketMQ's, each in its turn."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

from broker import wire
from broker.group import clients, with_cpu
from broker.sides import PATIENCE, SCRIPT, Rmqfast, RocketMQ, Side
from data import Dataset, discard
from groups import Plan
from live.peers import KEEPS, LACKING, entered
from measurement import Series, Variants, interleave, unmeasured
from peer import Answer, Failed, Peer
from rmqfast import Message, Producer, SendStatus
from rmqfast.errors import RmqError
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import decode

NAME = "brokerName=broker-a"
#: Sends of a run, and its threads.
SENDS, THREADS = 60_000, 16
#: Of what a slave copies the first part is not counted: it connects, and its JVM is cold.
COLD = 0.2
LOOK = 0.01
MASTERS = (RocketMQ, Rmqfast)


class Slave(RocketMQ):
    """A broker of RocketMQ 4.9.4 that follows a master from nothing."""

    name = "slave"

    def __init__(self, master: Side) -> None:
        super().__init__((f"namesrvAddr={master.name_server}", NAME, "brokerId=1", "brokerRole=SLAVE", *KEEPS))
        self.name_server_port, self.name_server = master.name_server_port, master.name_server

    def accepts(self) -> float:
        """It accepts none: that it is known to the name server is enough."""
        self.settle()
        return time.perf_counter()

    def end(self) -> None:
        """Kills it, which saves ten seconds."""
        subprocess.run([str(SCRIPT), "kill9", str(self.directory)], check=False, timeout=90)

    @property
    def log_end(self) -> int:
        """The end of its log; -1 while it does not answer yet."""
        with suppress(RmqError), RemotingClient("{}:{}".format(*self.address)) as client:
            table = decode(client.ask(RequestCode.GET_BROKER_RUNTIME_INFO, {}).body)["table"]
            return int(table["commitLogMaxOffset"])
        return -1


def slaves(plan: Plan) -> list[Series]:
    """The time of a slave to catch up, and of sends that wait for it, for each dataset."""
    found: list[Series] = []
    for dataset in plan.live:
        try:
            found += catching_up(plan, dataset) + sync_sends(plan, dataset)
        finally:
            discard(dataset)
    return found


def catching_up(plan: Plan, dataset: Dataset) -> list[Series]:
    """Both masters have the same log; RocketMQ's sends a new slave the last of its files, and only that is counted."""
    at, end, last = dataset.label, dataset.log_end, dataset.last_file
    begin = last + int((end - last) * COLD)

    def once(master: Side) -> Answer:
        with Slave(master) as slave:
            reached(slave, begin)
            before, start, at_first = master.cpu_seconds, time.perf_counter(), slave.log_end
            reached(slave, end)
            seconds, cpu = time.perf_counter() - start, master.cpu_seconds - before
        return {"rows": round((end - at_first) / dataset.record), "seconds": seconds, "cpu_seconds": cpu}

    return both(plan, f"slaves {{}} catch up {at}", lambda stack, kind: entered(stack, kind, dataset, KEEPS), once)


def sync_sends(plan: Plan, dataset: Dataset) -> list[Series]:
    """Threads that each wait until the slave has their message."""
    peers: dict[Side, Peer] = {}

    def begun(stack: ExitStack, kind: type[Side]) -> Side:
        master = stack.enter_context(kind((NAME, "brokerRole=SYNC_MASTER", *KEEPS)))
        stack.enter_context(Slave(master))
        wire.create_topic(master.address, "sent", 4)
        peers[master] = stack.enter_context(clients(master))
        peers[master].ask("connect", master.name_server)
        waits(master.name_server)
        return master

    def once(master: Side) -> Answer:
        return with_cpu(master, peers[master], ("sync", "sent", dataset.body, SENDS, THREADS))

    return both(plan, f"slaves {{}} sync {THREADS} {dataset.label}", begun, once)


def both(
    plan: Plan, name: str, begun: Callable[[ExitStack, type[Side]], Side], once: Callable[[Side], Answer]
) -> list[Series]:
    """Both masters run, and take turns."""
    missing: list[Series] = []
    variants: Variants = {}
    with ExitStack() as stack:
        for kind in MASTERS:
            try:
                variants[name.format(kind.name)] = partial(once, begun(stack, kind))
            except LACKING as error:
                missing.append(unmeasured(name.format(kind.name), error))
        return interleave(variants, plan.effort, []) + missing


def reached(slave: Slave, offset: int) -> None:
    """Waits until it has the log up to there."""
    deadline = time.monotonic() + PATIENCE
    while slave.log_end < offset:
        if time.monotonic() > deadline:
            raise Failed(f"the slave did not reach {offset} in {PATIENCE} s, got {slave.log_end}")
        time.sleep(LOOK)


def waits(name_server: str) -> None:
    """Until a send finds the slave: before that it is answered at once, and would be no figure."""
    deadline = time.monotonic() + PATIENCE
    with Producer("bench", name_server=name_server) as producer:
        while producer.send(Message("sent", b"x")).status is not SendStatus.SEND_OK:
            if time.monotonic() > deadline:
                raise Failed(f"no send found a slave in {PATIENCE} s")
            time.sleep(0.2)
