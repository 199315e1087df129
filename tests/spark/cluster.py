"""A Spark cluster of processes on the loopback: a master and workers, as a standalone deployment has them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyspark

from rmqfast.broker.ports import ReservedPorts
from tests.waiting import until

Settings = dict[str, bool | float | int | str | None]

#: Settings of a driver that nobody else can reach, and that shows nothing.
ALONE: Settings = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
#: Settings of a job that two executors of one core share: no task begins before both are there, so that each has some.
SHARED: Settings = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
}
_SPARK = Path(pyspark.__file__).parent


class Cluster:
    """A master and two workers of one core each, every one on a host of its own; `master` is its address."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[Any]] = []
        self._reserved = ReservedPorts("127.0.0.1")  # nobody else gets the port before the master listens there
        self.master = f"spark://127.0.0.1:{self._reserved.port}"
        try:
            self._start("127.0.0.1", "master.Master", "--port", str(self._reserved.port))
            until(lambda: _listens(self._reserved.port), patience=300)
            for n in range(workers):
                work = directory / f"worker-{n}"
                arguments = ("--cores", "1", "--memory", "1g", "--work-dir", str(work), self.master)
                self._start(f"127.0.0.{n + 1}", "worker.Worker", *arguments)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends all processes; a worker ends its executors."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()
        self._reserved.release()

    def _start(self, host: str, role: str, *arguments: str) -> None:
        command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}", "--host", host]
        command += ["--webui-port", "0", *arguments]
        settings = {"SPARK_HOME": str(_SPARK), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}
        self.add(command, self._directory / f"{role}-{len(self._processes)}.log", settings)

    def add(self, command: Sequence[str], log: Path, variables: Mapping[str, str]) -> subprocess.Popen[Any]:
        """Starts a process that ends with the cluster."""
        with log.open("wb") as opened:
            process = subprocess.Popen(
                command, stdout=opened, stderr=opened, env={**os.environ, **variables}, cwd=self._directory
            )
        self._processes.append(process)
        return process


def executors(application: str) -> Sequence[int]:
    """Process ids of the executors that an application now has."""
    wanted = {application.encode(), b"org.apache.spark.executor.CoarseGrainedExecutorBackend"}
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted <= set((entry / "cmdline").read_bytes().split(b"\0")):
                    found.append(int(entry.name))
    return found


def kill_executor(application: str) -> int:
    """Kills one executor, which has no chance to clean up; returns its process id."""
    victim = executors(application)[0]
    os.kill(victim, signal.SIGKILL)
    return victim


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
