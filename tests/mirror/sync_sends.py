"""Sends to a SYNC_MASTER that has a slave, without a mirror and with one: their statuses and how long they take.

python -m tests.mirror.sync_sends SENDS [ROUNDS]
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from rmqfast import Message, Mirror, Producer
from tests.interop.rocketmq import RocketMQ
from tests.mirror.copies import caught_up
from tests.waiting import until

SIZES = ("mappedFileSizeCommitLog=67108864", "haSendHeartbeatInterval=5000")
THREADS = 4
TOPIC = "orders"


def main() -> None:
    count, rounds = (int(text) for text in (*sys.argv[1:], "20000", "2")[:2])
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        with RocketMQ("4.9.4", where / "master", *SIZES, "brokerRole=SYNC_MASTER", clean=False) as master:
            own = ("brokerName=broker-a", "brokerId=1", "brokerRole=SLAVE", *SIZES)
            with RocketMQ("4.9.4", where / "slave", *own, beside=master, clean=False):
                master.create_topic(TOPIC, 4)
                # the slave says nothing for its first five seconds
                until(lambda: sends(master.name_server, 4 * THREADS)[0].keys() == {"SEND_OK"})
                sends(master.name_server, count // 4)
                for number in range(rounds):
                    report("without", *sends(master.name_server, count))
                    with Mirror(where / f"copies{number}", name_server=master.name_server) as mirror:
                        caught_up(mirror, master)
                        report("with", *sends(master.name_server, count))
                        caught_up(mirror, master)


def sends(name_server: str, count: int) -> tuple[Counter[str], list[float]]:
    """The statuses, and the seconds that each took."""
    statuses: Counter[str] = Counter()
    seconds: list[float] = []

    def send(producer: Producer) -> None:
        for number in range(count // THREADS):
            begin = time.perf_counter()
            status = producer.send(Message(TOPIC, b"x" * 200, keys=f"k{number}")).status
            seconds.append(time.perf_counter() - begin)
            statuses[status.name] += 1

    with Producer("sync", name_server=name_server) as producer:
        threads = [threading.Thread(target=send, args=(producer,)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return statuses, sorted(seconds)


def report(name: str, statuses: Counter[str], seconds: list[float]) -> None:
    median, late = (seconds[int(len(seconds) * share)] * 1000 for share in (0.5, 0.99))
    sys.stdout.write(f"{name} a mirror: {dict(statuses)}, median {median:.2f} ms, p99 {late:.2f} ms\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
