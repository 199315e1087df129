"""A stream on a Spark cluster of processes, and what is killed under it: tasks, executors, driver, broker."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import rmqfast
from rmqfast.broker.ports import ReservedPorts
from rmqfast.errors import RmqError
from tests.spark import cluster as spark_cluster
from tests.spark.engines import PYTHON
from tests.spark.live.streams import Place
from tests.spark.live.topics import CONFIG

PACKAGE = Path(rmqfast.__file__).parents[1]
ROOT = Path(__file__).parents[3]
PATIENCE = 600.0


class Server:
    """A name server and a broker in a process of their own, which comes back on the same ports with the same store."""

    def __init__(self, directory: Path) -> None:
        # held for as long as this is: nobody else gets them while the server is down
        self._directory, self._held = directory, (ReservedPorts("127.0.0.1"), ReservedPorts("127.0.0.1"))
        self._ports = [held.port for held in self._held]
        (directory / "broker.conf").write_text("".join(f"{name}={value}\n" for name, value in CONFIG.items()))
        self._process: subprocess.Popen[str] | None = None
        self.start()

    @property
    def name_server(self) -> str:
        return f"127.0.0.1:{self._ports[0]}"

    def start(self) -> None:
        command = [sys.executable, "-m", "rmqfast", "server", "--namesrv-port", str(self._ports[0])]
        command += ["--broker-port", str(self._ports[1]), "--store", str(self._directory / "store")]
        command += ["-c", str(self._directory / "broker.conf")]
        self._process = _started(command, self._directory / "server.log")
        _line(self._process, "ready")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        _closed(self._process)

    def close(self) -> None:
        self.kill()
        for held in self._held:
            held.release()


class Driver:
    """The stream's driver in a process of its own."""

    def __init__(self, engine: str, directory: Path, master: str, options: dict[str, str]) -> None:
        self._directory = directory
        self._command = [sys.executable, "-m", "tests.spark.live.stream_driver", engine, str(directory), master]
        self._command.append(json.dumps(options))
        self._process: subprocess.Popen[str] | None = None
        self.application = ""

    def start(self) -> None:
        self._process = _started(self._command, self._directory / "driver.log")
        self.application = _line(self._process, "running").split()[1]

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Python and its JVM, neither of which can clean up."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        _closed(self._process)

    def kill_task(self) -> None:
        """One that runs, if any does; of a driver that ends meanwhile there is none."""
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("kill\n")
            self._process.stdin.flush()

    def end(self) -> None:
        """All there is is stored."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        _line(self._process, "ended")


class Play:
    """Everything, with a producer that goes on while things are killed."""

    def __init__(self, engine: str, directory: Path, seed: int) -> None:
        # tasks of the JVM's source have no process of their own
        self._tasks_are_processes = engine == PYTHON
        self.directory, self._chance = directory, random.Random(seed)
        self.server = Server(directory)
        with rmqfast.Admin(name_server=self.server.name_server) as admin:
            admin.create_topic("orders", queues=3)
        (directory / "spark").mkdir()
        self._spark = spark_cluster.Cluster(directory / "spark")
        options = {"nameServer": self.server.name_server, "topic": "orders", "startingOffsets": "earliest"}
        options |= {"maxOffsetsPerTrigger": "2000", "minPartitions": "2"}
        self.driver = Driver(engine, directory, self._spark.master, options)
        self._is_over = threading.Event()
        self._producer = threading.Thread(target=self._produce, daemon=True)
        self.kills: list[str] = []

    def __enter__(self) -> Self:
        self.driver.start()
        self._producer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_over.set()
        self._producer.join(PATIENCE)
        self.driver.kill()
        self.server.close()
        self._spark.close()

    def kill_something(self) -> None:
        """Waits for a moment, kills what chance says, and has it come back."""
        time.sleep(self._chance.uniform(0.5, 4))  # noqa: TID251 - when something is killed is chance, and no matter
        kind = self._chance.choice(("task", "executor", "driver", "broker"))
        self.kills.append(kind)
        if kind == "broker":
            self.server.kill()
            time.sleep(self._chance.uniform(0, 2))  # noqa: TID251 - how long a broker is away, too
            self.server.start()
        elif kind == "driver" or not self.driver.is_running:
            self.driver.kill()
            self.driver.start()
        elif kind == "task" and not self._tasks_are_processes:
            self.driver.kill_task()
        else:
            found = workers() if kind == "task" else spark_cluster.executors(self.driver.application)
            for victim in self._chance.sample(list(found), min(1, len(found))):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)

    def ends(self) -> dict[tuple[str, int], int]:
        """No message comes any more, and all are stored: where the queues end."""
        self._is_over.set()
        self._producer.join(PATIENCE)
        for attempt in range(5):
            if not self.driver.is_running:
                self.driver.start()
            try:
                self.driver.end()
                break
            except AssertionError:  # a query that fails is started again, as one that was killed
                self.kills.append("itself")
                self.driver.kill()
                if attempt == 4:
                    raise
        with rmqfast.Admin(name_server=self.server.name_server) as admin:
            return {(row.broker_name, row.queue_id): row.max_offset for row in admin.topics.status("orders")}

    def _produce(self) -> None:
        with rmqfast.Producer("tests", name_server=self.server.name_server) as producer:
            while not self._is_over.wait(0.05):
                with contextlib.suppress(RmqError):  # sent once more, it would be another message
                    producer.send_many([rmqfast.Message("orders", bytes(200), tags="A")] * 50)


def stored(directory: Path) -> Counter[Place]:
    """How often each message stands in the output, as those see it who read it: in files that a batch has committed."""
    import pyarrow.parquet as pq

    log = directory / "out" / "_spark_metadata"
    lines = [line for path in log.iterdir() if not path.name.startswith(".") for line in path.read_text().splitlines()]
    paths = {json.loads(line)["path"].removeprefix("file://") for line in lines if line.startswith("{")}
    columns = ["broker_name", "queue_id", "queue_offset"]
    rows = (row for path in paths for row in pq.read_table(path, columns=columns).to_pylist())
    return Counter((row["broker_name"], row["queue_id"], row["queue_offset"]) for row in rows)


def workers() -> list[int]:
    """Process ids of Python workers that run tasks: forks of the daemons of executors."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (
                    str(PACKAGE).encode() in (entry / "environ").read_bytes()
                    and b"pyspark.daemon" in (entry / "cmdline").read_bytes()
                ):
                    parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return [pid for pid, parent in parents.items() if parent in parents]


def _closed(process: subprocess.Popen[str]) -> None:
    process.wait(PATIENCE)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _started(command: list[str], log: Path) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(PACKAGE), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    with log.open("ab") as file:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            env=environment,
            start_new_session=True,
        )


def _line(process: subprocess.Popen[str], first: str) -> str:
    """The line that begins so; what stands before it is passed over."""
    out: IO[Any] | None = process.stdout
    assert out is not None
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()
    try:
        for line in out:
            if line.startswith(first):
                return str(line)
    finally:
        timer.cancel()
    raise AssertionError(f"{process.args!r} ended, or did not say {first} in {PATIENCE} s")
