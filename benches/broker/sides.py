"""The two clusters that are compared, started alike: the same limits of a pull, quiet logs, a store of their own."""

from __future__ import annotations

import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from broker import wire
from data import scratch_dir
from machine import ROOT
from peer import Failed, Missing
from processes import process_seconds, stop
from rocketmq import appendable_copy

SCRIPT = ROOT / "tests/interop/real-rocketmq.sh"
LIMITS = (
    "maxTransferCountOnMessageInMemory=1024",
    "maxTransferBytesOnMessageInMemory=8388608",
    "maxTransferCountOnMessageInDisk=1024",
    "maxTransferBytesOnMessageInDisk=8388608",
)
PATIENCE = 90.0


def raise_open_files() -> None:
    """Raises the limit of open files to the machine's; child processes inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def free_ports() -> tuple[int, int]:
    """Two ports that nobody listens on nor beside them: a broker takes three; the kernel gives none of these away."""
    found: list[int] = []
    while len(found) < 2:
        port = random.randrange(12_000, 32_000)
        if all(map(is_free, range(port - 2, port + 2))) and all(abs(port - other) > 5 for other in found):
            found.append(port)
    return found[0], found[1]


def is_free(port: int) -> bool:
    """Whether one may listen there."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Side(ABC):
    """One cluster with a store of its own, started and ended by `with`; `started_in` seconds it accepted a message.

    The store is fresh, or begins with the messages of another one; `limits` are lines of broker.conf.
    """

    name: str

    def __init__(self, limits: Sequence[str] = LIMITS, messages: Path | None = None) -> None:
        self._limits, self._messages = limits, messages
        self.name_server_port, self.broker_port = free_ports()
        self.name_server, self.address = f"127.0.0.1:{self.name_server_port}", ("127.0.0.1", self.broker_port)
        self.directory = scratch_dir() / f"broker-{self.name}-{self.broker_port}"
        self.started_in = 0.0

    def __enter__(self) -> Self:
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.prepare()
        if self._messages is not None:
            appendable_copy(self._messages, self.directory / "store")
        with ExitStack() as undo:
            undo.push(self)
            begin = time.perf_counter()
            self.launch()
            try:
                self.started_in = self.accepts() - begin
            except TimeoutError as error:
                raise Failed(f"{self.name} did not start: {error}") from None
            self.settle()
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        shutil.rmtree(self.directory, ignore_errors=True)

    @abstractmethod
    def prepare(self) -> None:
        """Builds and files, before the timing starts."""

    @abstractmethod
    def launch(self) -> None:
        """Starts the processes and waits for nothing."""

    def accepts(self) -> float:
        """When it accepted a message for the first time, by the clock of perf_counter."""
        return wire.first_accepted(self.address, PATIENCE)

    @abstractmethod
    def settle(self) -> None:
        """Waits until the whole cluster is there."""

    @abstractmethod
    def end(self) -> None:
        """Ends the processes."""

    @property
    @abstractmethod
    def pids(self) -> list[int]:
        """Broker first."""

    @property
    def cpu_seconds(self) -> float:
        """CPU time of the broker so far."""
        try:
            return process_seconds(self.pids[0])
        except ProcessLookupError:
            raise Failed(f"the broker of {self.name} has ended") from None

    @property
    def resident_mib(self) -> float:
        """Resident memory of the whole cluster, in MiB."""
        return sum(map(resident_bytes, self.pids)) / 2**20


def resident_bytes(pid: int) -> int:
    """VmRSS of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


class RocketMQ(Side):
    """Name server and broker of 4.9.4, a process each."""

    name = "RocketMQ"

    def prepare(self) -> None:
        if shutil.which("java") is None or shutil.which("mvn") is None:
            raise Missing("java or mvn is not installed")
        subprocess.run([str(SCRIPT), "java", "4.9.4", "Codes"], check=True, capture_output=True)  # builds, if need be

    def launch(self) -> None:
        words = ("start", "4.9.4", self.directory, self.name_server_port, self.broker_port, *self._limits)
        environment = {**os.environ, "BROKER_HEAP": "-Xms1g -Xmx2g", "LOG_LEVEL": "WARN"}
        log = (self.directory / "start.log").open("wb")
        self._starting = subprocess.Popen([str(SCRIPT), *map(str, words)], stdout=log, stderr=log, env=environment)

    def settle(self) -> None:
        if self._starting.wait(PATIENCE) != 0:
            raise Failed(f"RocketMQ did not start: {(self.directory / 'start.log').read_text()[-300:]}")

    def end(self) -> None:
        subprocess.run([str(SCRIPT), "stop", str(self.directory)], check=False, timeout=90)

    @property
    def pids(self) -> list[int]:
        return [int((self.directory / f"{name}.pid").read_text()) for name in ("broker", "namesrv")]


class Rmqfast(Side):
    """Both in one process."""

    name = "rmqfast"
    _process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        self._conf = self.directory / "broker.conf"
        self._conf.write_text("".join(f"{line}\n" for line in self._limits))

    def launch(self) -> None:
        ports = ("--namesrv-port", self.name_server_port, "--broker-port", self.broker_port)
        where = ("--store", self.directory / "store", "-c", self._conf)
        command = [sys.executable, "-m", "rmqfast", "server", *ports, *where]
        with (self.directory / "server.log").open("wb") as log:
            self._process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, cwd=ROOT)

    def settle(self) -> None:
        """It serves as a whole once it serves at all."""

    def end(self) -> None:
        if self._process is not None:
            stop(self._process)

    @property
    def pids(self) -> list[int]:
        assert self._process is not None
        return [self._process.pid]
