"""A child process that times one engine: a request per line in, a JSON answer per line out, ended by its process id."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from processes import anonymous_bytes, stop

Answer = dict[str, Any]
PATIENCE = 1800.0


class Missing(Exception):
    """The engine is not there to be measured; the text says what lacks."""


class Failed(Exception):
    """The engine is there and did not give the figure; the text says why."""


class Peer:
    """One engine in its own process; what it logs goes to a file."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        with log.open("ab") as sink:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                text=True,
                env={**os.environ, **(environment or {})},
                start_new_session=True,  # an interrupt at the terminal is ours to handle, in order
            )

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._child.pid

    def ask(self, *request: object) -> Answer:
        """Sends a request of tab-separated words; raises Missing or Failed when there is no figure."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            self._child.stdin.write("\t".join(map(str, request)) + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"{request[0]}: the process ended, see {self._log}") from None
        ready, _, _ = select.select([self._child.stdout], [], [], PATIENCE)
        if not ready:
            raise Failed(f"{request[0]}: no answer within {PATIENCE:.0f} s")
        line = self._child.stdout.readline()
        if not line:
            raise Failed(f"{request[0]}: the process ended, see {self._log}")
        answer: Answer = json.loads(line)
        if "missing" in answer:
            raise Missing(answer["missing"])
        if "error" in answer:
            raise Failed(f"{request[0]}: {answer['error']}")
        return answer

    def close(self) -> None:
        """Ends the child and everything below it, by id."""
        stop(self._child)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class MemoryWatch:
    """Peak of a process's anonymous memory (RssAnon) while the block runs, sampled every 5 ms."""

    def __init__(self, pid: int) -> None:
        self.peak_bytes = 0
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.is_set():
            self.peak_bytes = max(self.peak_bytes, anonymous_bytes(self._pid))
            self._stop.wait(0.005)


def serve(handlers: Mapping[str, Callable[..., Answer]]) -> None:
    """The child's side: answers requests with the handler of that name until standard input ends."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else prints must not mix with the answers
    for line in sys.stdin:
        name, *arguments = line.rstrip("\n").split("\t")
        out.write(json.dumps(reply(handlers[name], arguments)) + "\n")


def reply(handler: Callable[..., Answer], arguments: Sequence[str]) -> Answer:
    """The handler's answer, or its error."""
    try:
        return handler(*arguments)
    except Missing as error:
        return {"missing": str(error)}
    except Exception as error:  # noqa: BLE001 - every engine's own exceptions: the driver reports them and goes on with the others
        return {"error": f"{type(error).__name__}: {gist(str(error))}"[:500]}


def gist(text: str) -> str:
    """The line of an error that says most: the innermost cause that the JVM names, or the first one."""
    causes = [line for line in text.splitlines() if line.startswith("Caused by: ")]
    return "".join(causes[-1:] or text.splitlines()[:1])


def timed(work: Callable[[], Answer]) -> Answer:
    """The answer of a piece of work with the seconds and CPU seconds that it took in this process."""
    begin, cpu = time.perf_counter(), time.process_time()
    answer = work()
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu, **answer}
