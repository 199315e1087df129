"""Workers of `rmqfast.spark.daemon` end quietly when Spark lets go of them; tasks and their errors are as ever."""

from __future__ import annotations

import os
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

WORD = "sesame"
# in place of what runs tasks: echoes a number, and fails at 13
WORKER = """
import struct

def main(infile, outfile):
    asked = infile.read(4)
    outfile.write(asked)
    if len(asked) < 4:
        raise EOFError
    if struct.unpack(">i", asked) == (13,):
        raise RuntimeError("thirteen")
"""

DAEMON = """
import sys, echo
sys.modules["pyspark.worker"] = echo
from rmqfast.spark.daemon import main
main()
"""

Daemon = subprocess.Popen[bytes]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """The daemon, listening on the loopback address."""
    (tmp_path / "echo.py").write_text(WORKER)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    env = os.environ | {"PYTHONPATH": path, "PYTHON_WORKER_FACTORY_SECRET": WORD, "SPARK_REUSE_WORKER": "1"}
    command = [sys.executable, "-c", DAEMON]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        yield process
        process.kill()


def connected(daemon: Daemon) -> tuple[socket.socket, int]:
    """A socket to a new worker, and a descriptor that is ready once the worker is gone."""
    assert daemon.stdout is not None
    sock = socket.create_connection(("127.0.0.1", number(daemon.stdout.read(4))))
    return sock, os.pidfd_open(number(sock.recv(4)))


def number(data: bytes) -> int:
    """A number as Java writes it."""
    return int(struct.unpack(">i", data)[0])


def asked(sock: socket.socket, value: int) -> int:
    """What the worker answers."""
    sock.sendall(struct.pack(">i", value))
    return number(sock.recv(4))


def log_in(sock: socket.socket) -> None:
    """Says the word that Spark gave to the daemon."""
    sock.sendall(struct.pack(">i", len(WORD)) + WORD.encode())
    assert sock.recv(6) == struct.pack(">i", 2) + b"ok"


def said(daemon: Daemon, worker: int) -> str:
    """What was written to standard error when the worker, and then the daemon, is gone."""
    assert select.select([worker], [], [], 60)[0], "the worker does not end"
    os.close(worker)
    _, errors = daemon.communicate(timeout=60)
    return errors.decode()


def test_a_worker_that_spark_lets_go_after_its_tasks_ends_without_a_word(daemon: Daemon) -> None:
    sock, worker = connected(daemon)
    log_in(sock)
    assert [asked(sock, n) for n in (1, 2, 3)] == [1, 2, 3]
    sock.close()
    assert said(daemon, worker) == ""


def test_a_worker_that_never_gets_a_task_ends_without_a_word(daemon: Daemon) -> None:
    sock, worker = connected(daemon)
    sock.close()
    assert said(daemon, worker) == ""


def test_what_fails_in_a_task_is_still_told(daemon: Daemon) -> None:
    sock, worker = connected(daemon)
    log_in(sock)
    assert asked(sock, 13) == 13
    sock.close()
    assert "RuntimeError: thirteen" in said(daemon, worker)


def test_no_more_is_loaded_before_the_fork_than_by_the_daemon_of_pyspark() -> None:
    """Threads do not survive a fork: pyarrow and pandas start some when they are imported."""
    look = "import os, sys, {}; print(len(os.listdir('/proc/self/task')), {{'pyarrow', 'pandas'}} & set(sys.modules))"
    ours, theirs = (
        subprocess.run([sys.executable, "-c", look.format(module)], check=True, capture_output=True, text=True).stdout
        for module in ("rmqfast.spark.daemon", "pyspark.daemon")
    )
    assert ours == theirs
