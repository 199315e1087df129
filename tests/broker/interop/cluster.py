"""A name server and a broker to ask: RocketMQ's own, or rmqfast's, started alike and told apart by nobody."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import rmqfast
from tests.interop.rocketmq import NICE, NameServed, RocketMQ, free_ports
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]
# As real-rocketmq.sh starts a broker.
BASE = (
    "brokerIP1=127.0.0.1",
    "diskMaxUsedSpaceRatio=95",
    "fileReservedTime=87600",
    "autoCreateTopicEnable=true",
    "enablePropertyFilter=true",
)
# What real-rocketmq.sh tells the JVM, too.
DISK = ("rocketmq.broker.diskSpaceWarningLevelRatio=0.97", "rocketmq.broker.diskSpaceCleanForciblyRatio=0.96")
# What makes a scenario short; both clusters are told the same.
SCENARIO = (
    "messageDelayLevel=1s 3s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1h",
    "transactionTimeOut=1000",
    "transactionCheckInterval=1000",
    "enablePropertyFilter=true",
    "mappedFileSizeCommitLog=16777216",
    "mappedFileSizeConsumeQueue=60000",
    "maxHashSlotNum=1000",
    "maxIndexNum=4000",
)


TAKEN = "Address already in use"


class PortTakenError(RuntimeError):
    """A server that did not start, as a port that was free when it was chosen is no more."""


class RealCluster(RocketMQ):
    """RocketMQ of one version; `with` starts and stops it."""

    def __init__(
        self,
        version: str,
        directory: Path,
        properties: tuple[str, ...] = (),
        *,
        ports: tuple[int, int] | None = None,
        heap: str = "-Xms256m -Xmx1g",
        beside: RealCluster | None = None,
    ) -> None:
        more = ("timerWheelEnable=false",) if version.startswith("5") else ()
        super().__init__(version, directory, *properties, *more, ports=ports, heap=heap, beside=beside)


class OurCluster:
    """Name server and broker in one process, or a broker beside one, `broker-b`; `with` starts and stops it."""

    _process: subprocess.Popen[bytes] | None = None
    _reader: threading.Thread

    def __init__(
        self,
        directory: Path,
        properties: tuple[str, ...] = (),
        ports: tuple[int, int] | None = None,
        beside: NameServed | None = None,
    ) -> None:
        self.directory = directory
        self.properties = properties
        #: Further variables of the process's environment.
        self.environment: dict[str, str] = {}
        self._beside = beside
        self.name_server_port, self.broker_port = ports or self._free_ports()
        self._settled = ports is not None
        self.store = directory / "store"

    @property
    def name_server(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.name_server_port}"

    @property
    def broker(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self.broker_port}"

    def start(self) -> None:
        """Starts it and waits until it serves; a stopped one goes on with what it stored."""
        try:
            self._start()
        except PortTakenError:
            if self._settled:
                raise
            self.name_server_port, self.broker_port = self._free_ports()  # somebody was faster
            self._start()
        self._settled = True

    def _start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        conf = self.directory / "broker.conf"
        paths = f"rocketmqHome={self.directory}\nstorePathCommitLog={self.store}/commitlog"
        place = () if self._beside is None else self._alone()
        conf.write_text("".join(f"{line}\n" for line in (*BASE, *DISK, paths, *place, *self.properties)))
        log = (self.directory / "server.log").open("ab")
        command = [*NICE, sys.executable, "-m", "rmqfast", *self._words(), "-c", conf]
        path = os.pathsep.join(
            filter(None, (str(Path(rmqfast.__file__).parents[1]), str(ROOT), os.environ.get("PYTHONPATH")))
        )
        self._process = subprocess.Popen(
            list(map(str, command)),
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1", **self.environment},
        )
        log.close()
        self._await_ready(PATIENCE)

    def _words(self) -> tuple[object, ...]:
        if self._beside is not None:
            return ("broker", "--name-server", self.name_server)
        ports = ("--namesrv-port", self.name_server_port, "--broker-port", self.broker_port)
        return ("server", *ports, "--store", self.store)

    def _alone(self) -> tuple[str, ...]:
        return (f"listenPort={self.broker_port}", f"storePathRootDir={self.store}", "brokerName=broker-b")

    def _free_ports(self) -> tuple[int, int]:
        if self._beside is None:
            name_server, broker = free_ports(2)
            return name_server, broker
        (broker,) = free_ports(1)
        return self._beside.name_server_port, broker

    def _await_ready(self, seconds: float) -> None:
        """Reads the line with `ready`; what else is printed is read away."""
        assert self._process is not None
        assert self._process.stdout is not None
        output, ready = self._process.stdout, threading.Event()

        def read() -> None:
            for line in output:
                if b"ready" in line:
                    ready.set()

        self._reader = threading.Thread(target=read, daemon=True)
        self._reader.start()
        end = time.monotonic() + seconds
        while not ready.wait(0.005):
            if self._process.poll() is not None or time.monotonic() > end:
                self._end(signal.SIGKILL)
                said = (self.directory / "server.log").read_text()[-2000:]
                kind = PortTakenError if TAKEN in said else RuntimeError
                raise kind(f"the server did not become ready: {said}")

    def stop(self) -> int:
        """Ends it cleanly; how it ended."""
        return self._end(signal.SIGTERM)

    def kill9(self) -> None:
        """Ends the process of the broker as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        if self._process is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired as error:
            # it writes where each thread is, and ends: nobody could tell afterwards why it did not
            self._process.send_signal(signal.SIGABRT)
            self._process.wait()
            error.add_note((self.directory / "server.log").read_text(errors="replace")[-20_000:])
            raise
        self._reader.join(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return code

    @property
    def pid(self) -> int:
        """The process of the broker."""
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


#: Either; both have the same face.
Cluster = RealCluster | OurCluster


def cluster_of(name: str, directory: Path, properties: tuple[str, ...] = ()) -> Cluster:
    """`ours`, or RocketMQ by its version."""
    return OurCluster(directory, properties) if name == "ours" else RealCluster(name, directory, properties)


def second_broker(cluster: Cluster, properties: tuple[str, ...] = ()) -> Cluster:
    """A broker `broker-b` of the same kind, at the name server of a cluster that runs."""
    directory = cluster.directory.with_name(f"{cluster.directory.name}-b")
    if isinstance(cluster, OurCluster):
        return OurCluster(directory, properties, beside=cluster)
    return RealCluster(cluster.version, directory, properties, beside=cluster)


def version_of(cluster: Cluster) -> str:
    """The release of the tools that are used with it."""
    return cluster.version if isinstance(cluster, RealCluster) else "4.9.4"
