"""A master and its slave, one RocketMQ's and one ours, at a name server that outlives both; and load for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rmqfast import Admin, ConsumeConcurrentlyStatus, Message, MessageView, Producer, SendStatus
from rmqfast.client.push import ConsumeConcurrentlyContext
from rmqfast.errors import RmqError
from rmqfast.nameserver import NameServer, NamesrvConfig
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import decode
from tests.interop.rocketmq import PATIENT, RocketMQ
from tests.mirror.copies import SMALL, assert_same, units_of
from tests.waiting import until

from .cluster import OurCluster

__all__ = ["OURS", "Consumed", "Pair", "load", "pair"]

#: Both have the same face, as far as it is used here.
Either = OurCluster | RocketMQ
OURS = "ours"
MASTER = ("brokerName=broker-a", "brokerRole=SYNC_MASTER", "slaveTimeout=2000", *SMALL)
SLAVE = ("brokerName=broker-a", "brokerId=1", "brokerRole=SLAVE", "slaveReadEnable=true", *SMALL)
#: A master of 5.x waits for nobody unless it is told how many are to have a message, itself included.
OF_5 = ("inSyncReplicas=2", "timerWheelEnable=false")


@dataclass(frozen=True)
class Names:
    """A name server of ours, in this process."""

    name_server: str

    @property
    def name_server_port(self) -> int:
        return int(self.name_server.rpartition(":")[2])


@dataclass(frozen=True)
class Pair:
    """Both of them, and what their kinds are called: `ours`, or a version of RocketMQ."""

    name_server: str
    master: Either
    slave: Either
    kinds: tuple[str, str]

    def is_same(self) -> None:
        """Waits until the slave has the master's log, and compares the two, and the queues."""
        end, slave = end_of(self.master.broker), self.slave.broker
        assert end > 0
        until(lambda: end_of(slave) >= end, lambda: f"{end}, got {end_of(slave)}")
        # the log is there before it is listed
        until(lambda: units_of(self.master.store) == units_of(self.slave.store))
        assert_same(self.master.store, self.slave.store)

    def promote(self) -> None:
        """Ends the slave cleanly, and starts it as a master."""
        self.slave.stop()
        kept = [line for line in self.slave.properties if "brokerId" not in line and "Role" not in line]
        self.slave.properties = tuple(kept)
        self.slave.start()


@contextmanager
def pair(kinds: tuple[str, str], directory: Path) -> Iterator[Pair]:
    """Starts a master and a slave of these kinds, with the topic `orders` and the group `readers`."""
    config = NamesrvConfig(kv_config_path=str(directory / "kvConfig.json"), listen_port=0)
    with NameServer(config) as server:
        names = Names(server.address)
        with broker(kinds[0], directory / "master", MASTER, names) as master:
            with Admin(name_server=names.name_server) as admin:
                admin.topics.create("orders", queues=4, cluster="DefaultCluster")
                admin.create_group("readers", cluster="DefaultCluster")
            with broker(kinds[1], directory / "slave", SLAVE, names) as slave:
                yield Pair(names.name_server, master, slave, kinds)


def broker(kind: str, directory: Path, properties: tuple[str, ...], names: Names) -> Either:
    """A broker of a kind at the name server."""
    if kind == OURS:
        return OurCluster(directory, properties, beside=names)
    more = OF_5 if kind.startswith("5") else ()
    return RocketMQ(kind, directory, *properties, *PATIENT, *more, beside=names, clean=False)


def end_of(address: str) -> int:
    """The end of a broker's log; -1 while 4.9.4 does not answer, some seconds after its start."""
    with suppress(RmqError), RemotingClient(address, timeout=5) as client:
        table = decode(client.ask(RequestCode.GET_BROKER_RUNTIME_INFO, {}).body)["table"]
        return int(table["commitLogMaxOffset"])
    return -1


@contextmanager
def load(pair: Pair) -> Iterator[list[bytes]]:
    """Messages are sent meanwhile, each of another body; those that were acknowledged by a slave, too."""
    is_over = threading.Event()
    acknowledged: list[bytes] = []

    def work() -> None:
        number = 0
        with Producer("loading", name_server=pair.name_server) as producer:
            while not is_over.is_set():
                number += 1
                body = b"%d %d" % (thread_number, number)
                with suppress(RmqError):
                    if producer.send(Message("orders", body + b" " * 300)).status is SendStatus.SEND_OK:
                        acknowledged.append(body)

    thread_number = time.time_ns()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield acknowledged
    finally:
        is_over.set()
        thread.join()


@dataclass
class Consumed:
    bodies: set[bytes] = field(default_factory=set)

    def __call__(
        self, messages: tuple[MessageView, ...], _context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        self.bodies.update(message.body.strip() for message in messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
