"""A server of Spark Connect in a process of its own, on a port that nobody else gets."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyspark

import rmqfast
import rmqfast.spark
from rmqfast.broker.ports import ReservedPorts
from tests.spark.cluster import ALONE, Settings
from tests.waiting import until

_SPARK = Path(pyspark.__file__).parent
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer:
    """A server that has the jar of the columnar source; `url` leads clients to it.

    PySpark's own `remote("local[2]")` always takes port 15002: of two on one machine the second one does not start.
    """

    def __init__(self, directory: Path) -> None:
        self._log = directory / "connect-server.log"
        self._reserved = ReservedPorts("127.0.0.1")
        self.url = f"sc://127.0.0.1:{self._reserved.port}"
        settings: Settings = ALONE | {
            "spark.jars": str(rmqfast.spark.jar_path()),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._reserved.port),
        }
        confs = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        command = [str(_SPARK / "bin" / "spark-submit"), "--master", "local[2]", *confs, "--class", _CLASS]
        # its workers must find this package
        path = os.pathsep.join([str(Path(rmqfast.__file__).parents[1]), str(Path(__file__).parents[3]), *sys.path])
        environment = {"SPARK_HOME": str(_SPARK), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}
        with self._log.open("wb") as log:
            self._process: subprocess.Popen[Any] = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **environment}, cwd=directory
            )

    def __enter__(self) -> Self:
        try:
            until(self._listens, self.told, patience=300)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the server."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(20)
        self._process.kill()
        self._process.wait()
        self._reserved.release()

    def told(self) -> str:
        """The log of the server, without Java's frames, which come by the hundred."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(line for line in lines if not line.startswith("\tat "))

    def _listens(self) -> bool:
        assert self._process.poll() is None, self.told()
        try:
            socket.create_connection(("127.0.0.1", self._reserved.port), 1).close()
        except OSError:
            return False
        return True
