"""Spark's daemon of Python workers, with workers that end without a word once Spark needs them no more.

Spark closes the socket of a worker that has idled for a minute, or when it stops. PySpark's worker, which waits there
for a task, takes that for a task that failed, cannot say so to anybody, and leaves a traceback on standard error.
Here it looks whether a task comes before it begins with one. What fails in a task fails as ever.

Source: `PythonWorkerFactory.cleanupIdleWorkers` and `spark.python.daemon.module` of Spark, `pyspark.daemon.worker`.
"""

from __future__ import annotations

import socket

from pyspark import daemon

__all__ = ["main"]

_DONE = 1  # what makes PySpark's loop end the worker


def main() -> None:
    """Runs the daemon until Spark closes its standard input."""
    # PySpark's own, which the manager finds by this name after each fork
    work = daemon.worker

    def worker(sock: socket.socket, authenticated: bool) -> int:  # noqa: FBT001  # as PySpark calls it
        return work(sock, authenticated) if _is_needed(sock) else _DONE

    daemon.worker = worker
    daemon.manager()


def _is_needed(sock: socket.socket) -> bool:
    """Waits for the first byte of a task, or for the end of the socket."""
    try:
        # only looked at: the byte belongs to the task
        return bool(sock.recv(1, socket.MSG_PEEK))
    except ConnectionError:
        # Spark was killed, or reset the socket instead of closing it
        return False


if __name__ == "__main__":
    main()
