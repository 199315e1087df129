"""A terminal in which the commands of a document run one after the other."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

_END = "-- the block ends, status"
#: A document may wait for what never comes.
SECONDS = 200


class Terminal:
    """A bash of its own: variables, and what runs in the background, stay from block to block.

    Standard error comes with standard output, as on a screen. What still runs at the end is ended.
    """

    def __init__(self, place: Path, *, seconds: int = SECONDS) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        # as wide as a page shows, without colours
        environment = {**os.environ, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1", "HOME": str(place)}
        environment.pop("NAMESRV_ADDR", None)
        self._bash = subprocess.Popen(
            ["timeout", str(seconds), "bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=place,
            env=environment,
            start_new_session=True,
        )

    def run(self, commands: str) -> str:
        """The output of the commands, once the last one has ended."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f"{commands}\nprintf '%s %d\\n' '{_END}' $?\n")
        self._bash.stdin.flush()
        printed = []
        for line in self._bash.stdout:
            before, end, _ = line.partition(_END)
            printed.append(before)
            if end:
                return "".join(printed)
        raise AssertionError(f"bash has ended in {commands}: {''.join(printed)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGTERM)  # with what it started
        self._bash.communicate()
