"""Types what stands in the README, block by block, on a machine where the package is installed.

    python -m tests.release.typed_readme DIRECTORY

Its addresses and paths are replaced by those of a store and a cluster in the directory; nothing else is.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from tests.examples.documents import blocks_of, check_code, shell_lines, with_readers
from tests.readme.readers import DOCUMENT, readers_things


def main(directory: Path) -> None:
    """Prints what was typed, a line each.

    Raises:
        AssertionError: Something is not as the README says.
        CalledProcessError: A command failed; it has said why.
    """
    with readers_things(directory) as things:
        for block in blocks_of(DOCUMENT):
            if block.language == "sh":
                for line in shell_lines(block.code):
                    _type_command(with_readers(line, things))
            elif "def test_" in block.code:
                _type_test(block.code, directory)
            else:
                _type_code(block.code, things)


def _type_code(code: str, things: dict[str, str]) -> None:
    names = check_code(DOCUMENT, readers=things, chosen=code.__eq__)
    if "query" in names:
        names["query"].processAllAvailable()
        names["query"].stop()
        rows = [names[name].count() for name in ("stored", "live")]
        names["spark"].stop()
    else:
        rows = [len(names[name]) for name in ("frame", "messages") if name in names]
    assert rows
    assert all(rows), rows
    print(f"a block of code: {', '.join(map(str, rows))} rows")


def _type_command(line: str) -> None:
    words = shlex.split(line)
    if words[0] in {"pip", "make"}:
        return  # pip has run, and `make` is for a clone
    assert words[0] == "rmqfast", line
    if words[1] == "server":
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            assert any("ready" in printed for printed in server.stdout), "the server ended before it was ready"
            server.terminate()
        assert server.returncode == 0, server.returncode
    else:
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    print(" ".join(words[:3]))


def _type_test(code: str, directory: Path) -> None:
    file = directory / "test_orders.py"
    file.write_text(code, encoding="utf-8")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file))
    printed = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, text=True, check=True).stdout
    print(printed.splitlines()[-1])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
