"""The bash of a reader who takes the commands of a page one by one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .documents import blocks_of, shell_lines, with_readers

_HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?")


def commands_of(code: str) -> list[str]:
    """The commands of a block, each with the text that it reads; `pip` is left out, as nothing is installed here."""
    lines = iter(shell_lines(code))
    return [_whole(line, lines) for line in lines if line and not line.startswith("pip ")]


def sh_blocks(document: str) -> list[list[str]]:
    """The commands of each `sh` block of a page."""
    return [commands_of(block.code) for block in blocks_of(document) if block.language == "sh"]


def _whole(line: str, following: Iterator[str]) -> str:
    """A command with the lines of its here-document."""
    found = _HERE_DOCUMENT.search(line)
    if found is None:
        return line
    text = [line]
    while text[-1] != found[1]:
        text.append(next(following))
    return "\n".join(text)


class ReadersShell:
    """Runs commands in the reader's home, with our command line, and what is here in place of what the reader has.

    Args:
        home: The reader's `~`, and the directory of the commands.
        readers: What the reader has, such as an address, and what stands for it here.

    Attributes:
        environment: The variables of the commands.
    """

    def __init__(self, home: Path, readers: Mapping[str, str]) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        own = {"PATH": path, "HOME": str(home), "COLUMNS": "200", "NO_COLOR": "1"}
        others = {"NAMESRV_ADDR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"}
        self.environment = {name: value for name, value in os.environ.items() if name not in others} | own
        self._home, self._readers = home, readers

    def words(self, command: str) -> list[str]:
        """The words that start a command; signals reach the command itself."""
        return ["bash", "-c", f"cd '{self._home}' && exec {with_readers(command, self._readers)}"]

    def run(self, command: str, *, code: int = 0) -> str:
        """The output of a command; another exit code raises an error with all its output."""
        # `jq` is not everywhere, and none of ours
        command = with_readers(command.partition(" | jq ")[0], self._readers)
        return self._done(["bash", "-c", command], code)

    def python(self, program: str) -> str:
        return self._done([sys.executable, "-c", with_readers(program, self._readers)], 0)

    @contextmanager
    def started(self, command: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on until Ctrl-C, which ends it with 0 at the end of the block."""
        pipe = subprocess.PIPE
        with subprocess.Popen(
            self.words(command), env=self.environment, stdout=pipe, stderr=pipe, text=True
        ) as process:
            try:
                yield process
                process.send_signal(signal.SIGINT)
                _, said = process.communicate()
                assert process.returncode == 0, (command, said)
            finally:
                process.kill()

    def _done(self, words: list[str], code: int) -> str:
        done = subprocess.run(
            words, cwd=self._home, env=self.environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout


def line_with(process: subprocess.Popen[str], text: str) -> str:
    """The next line of what a command prints that has a text; that the command ends before is an error."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"{text!r} was not printed: {process.communicate()}")
