"""Sends to a SYNC_MASTER that has a slave: alone, beside a socket that drops the slave's log, and beside a mirror.

python -m tests.mirror.sync_sends SENDS [ROUNDS [RATE]]

RATE is how many are sent a second; without, each thread sends as fast as it is answered.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from rmqfast import Message, Producer
from rmqfast.remoting import RemotingClient, RequestCode
from rmqfast.remoting.fastjson import decode
from tests.interop.rocketmq import RocketMQ
from tests.mirror.kills import CopyProcess, end_of
from tests.waiting import until

SIZES = ("mappedFileSizeCommitLog=67108864", "haSendHeartbeatInterval=5000")
THREADS = 4
TOPIC = "orders"
#: Longer than the master waits for its slave: what came of that is told.
TIMEOUT = 10.0
#: What a reader reports that is no replica.
NO_REPLICA = (-(1 << 62)).to_bytes(8, "big", signed=True)


def main() -> None:
    count, rounds, rate = (int(text) for text in (*sys.argv[1:], "20000", "2", "0")[:3])
    late: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        with RocketMQ("4.9.4", where / "master", *SIZES, "brokerRole=SYNC_MASTER", clean=False) as master:
            own = ("brokerName=broker-a", "brokerId=1", "brokerRole=SLAVE", *SIZES)
            with RocketMQ("4.9.4", where / "slave", *own, beside=master, clean=False) as slave:
                master.create_topic(TOPIC, 4)
                # the slave says nothing for its first five seconds
                until(lambda: sends(master.name_server, 4 * THREADS, 0)[0].keys() == {"SEND_OK"})
                sends(master.name_server, count // 4, 0)

                def measured(name: str) -> None:
                    late[name].append(report(name, *sends(master.name_server, count, rate)))

                for number in range(rounds):
                    measured("alone")
                    with dropped(slave):
                        measured("socket")
                    with mirrored(master, where / f"copies{number}"):
                        measured("mirror")
    for name, values in late.items():
        ratio = statistics.median(values) / statistics.median(late["alone"])
        sys.stdout.write(f"{name}: median of p99 {statistics.median(values):.2f} ms, {ratio:.2f} of alone\n")


@contextlib.contextmanager
def mirrored(master: RocketMQ, copies: Path) -> Iterator[None]:
    """`rmqfast mirror`, which has all that its master has, before and behind the block."""
    copy = copies / "broker-a"

    def catch_up() -> None:
        end = end_of(master.store)
        until(lambda: (copy / "mirror.json").exists() and end_of(copy) >= end)

    process = CopyProcess(master.name_server, copies)
    process.start()
    try:
        catch_up()
        yield
        catch_up()
    finally:
        code = process.end(signal.SIGTERM)
    assert code == 0


@contextlib.contextmanager
def dropped(slave: RocketMQ) -> Iterator[None]:
    """A process with a socket that reads the slave's log from its end, and drops it."""
    with RemotingClient(slave.broker) as client:
        end = decode(client.ask(RequestCode.GET_BROKER_RUNTIME_INFO, {}).body)["table"]["commitLogMaxOffset"]
    # not a thread: it would take its turns from those that send
    process = multiprocessing.get_context("spawn").Process(target=drop, args=(slave.broker_port + 1, int(end)))
    process.start()
    try:
        yield
        assert process.is_alive()
    finally:
        process.terminate()
        process.join()


def drop(port: int, end: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(end.to_bytes(8, "big"))
        reported = time.monotonic()
        while connection.recv(1 << 20):
            if time.monotonic() > reported + 4:
                connection.sendall(NO_REPLICA)
                reported = time.monotonic()


def sends(name_server: str, count: int, rate: int) -> tuple[Counter[str], list[float]]:
    """The statuses, and the seconds that each took."""
    statuses: Counter[str] = Counter()
    seconds: list[float] = []
    pace = threading.Event()

    def send(producer: Producer) -> None:
        start = time.perf_counter()
        for number in range(count // THREADS):
            if rate:
                pace.wait(start + number * THREADS / rate - time.perf_counter())
            begin = time.perf_counter()
            status = producer.send(Message(TOPIC, b"x" * 200, keys=f"k{number}"), timeout=TIMEOUT).status
            seconds.append(time.perf_counter() - begin)
            statuses[status.name] += 1

    with Producer("sync", name_server=name_server) as producer:
        threads = [threading.Thread(target=send, args=(producer,)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return statuses, sorted(seconds)


def report(name: str, statuses: Counter[str], seconds: list[float]) -> float:
    """Milliseconds of the 99th percentile."""
    median, late = (seconds[int(len(seconds) * share)] * 1000 for share in (0.5, 0.99))
    sys.stdout.write(f"{name}: {dict(statuses)}, median {median:.2f} ms, p99 {late:.2f} ms\n")
    sys.stdout.flush()
    return late


if __name__ == "__main__":
    main()
