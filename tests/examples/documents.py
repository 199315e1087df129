"""Runs the code of documents and compares its output."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rmqfast import DamageWarning, errors

from .terminal import SECONDS, Terminal

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
_BLOCK = re.compile(r'^```(python|sh|text|toml)(?: title="(.+?)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^## .*?^`examples/(\w+)\.py`.*?^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: What no two runs have alike, and what stands for it.
_MASKS = (
    # of an ingest
    (re.compile(r"^(bytes|seconds|rows per second|mb per second) +\d\S*", re.MULTILINE), r"\1 N"),
    (re.compile(r"config files +\d+"), "config files N"),  # a broker writes them when it comes to it
    (re.compile(r"_1[0-9a-f]{10}\b"), ""),  # behind names, on a cluster that is not the example's own
    (re.compile(r"log offset \d+"), "log offset N"),
    (re.compile(r"size \d+"), "size N"),
    (re.compile(r"commitlog, \d+ bytes from byte \d+"), "commitlog, N bytes from byte N"),
    (re.compile(r"\b[0-9A-F]{32}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?( UTC|Z|\+00:00)?"), "TIME"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+:\d+"), "ADDRESS"),
    (re.compile(r"password=\S+"), "password=WORD"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+@"), "IP@"),
    (re.compile(r"\b1\d{12} +\d+\b"), "MILLISECONDS  N"),
    (re.compile(r"\b1\d{12}\b"), "MILLISECONDS"),
    (re.compile(r"\b20\d{15}\b"), "FILE"),
    # traces go out together, as many as there are by then
    (re.compile(r"^(messages|units|log bytes) +\d+", re.MULTILINE), r"\1 N"),
    (re.compile(r"\d+ +\d+ +expected a record"), "N  N  expected a record"),
    (re.compile(r"\d+ bytes not read|offset \d+, \d+ bytes"), "N bytes"),
    (re.compile(r"\b\d+\.\d\b(?!\.)"), "N.N"),
    (re.compile(r"\b\d+(\.\d+)?( ms\b| ?s\b| rows/s| MB/s)"), r"N\2"),
    (re.compile(r"  +"), "  "),  # columns are as wide as what stands in them
    (re.compile(r"--+"), "--"),
    (re.compile(r" +$", re.MULTILINE), ""),
)


class Block(NamedTuple):
    """A block of code, or of a file's text, in a document."""

    line: int
    language: str
    file: str | None
    code: str
    printed: str


def blocks_of(document: str) -> Iterator[Block]:
    """The code of a document, each block with the text that follows it."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    for number, match in enumerate(found):
        language, file, code = match.groups()
        if language != "text":
            after = found[number + 1] if number + 1 < len(found) else None
            printed = after[3] if after is not None and after[1] == "text" else ""
            yield Block(text.count("\n", 0, match.start()) + 2, language, file, code, printed)


def check_code(
    document: str,
    *,
    readers: Mapping[str, str] | None = None,
    chosen: Callable[[str], bool] = bool,
) -> dict[str, Any]:
    """Runs the Python of a document, and compares what it prints with what stands below it.

    Args:
        document: Its path below `docs`.
        readers: What the reader has of his own, such as a path or an address, and what stands for it here.
        chosen: Which blocks run.

    Returns:
        The names that the code has defined.
    """
    names: dict[str, Any] = {"__name__": document}
    try:
        for block in blocks_of(document):
            if block.language == "python" and chosen(block.code):
                printed = _printed_by(block._replace(code=with_readers(block.code, readers or {})), names, document)
                assert printed == block.printed, f"docs/{document}:{block.line} prints\n{printed}"
    finally:
        _stop(names)
    return names


def shell_lines(block: str) -> list[str]:
    """The commands of a block without their comments."""
    return [line.split("  #")[0].strip() for line in block.splitlines()]


def with_readers(code: str, readers: Mapping[str, str]) -> str:
    """Code or a command with what is here in place of what the reader has."""
    for theirs, here in readers.items():
        code = code.replace(theirs, here)
    return code


def check_tutorial(document: str, place: Path, *, seconds: int = SECONDS) -> None:
    """Does what a document says, from its first block to its last, in an empty directory.

    Python runs in one interpreter, `sh` in one terminal, and what has a title is written to that file. What is printed
    is compared with the text below it.

    Args:
        document: Its path below `docs`.
        place: The directory.
        seconds: After this time the terminal ends.
    """
    names: dict[str, Any] = {"__name__": document}
    try:
        with contextlib.chdir(place), Terminal(place, seconds=seconds) as terminal, warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)  # it goes to standard error
            for block in blocks_of(document):
                printed = _printed_in_tutorial(block, names, document, terminal)
                assert masked(printed) == masked(block.printed), f"docs/{document}:{block.line} prints\n{printed}"
    finally:
        _stop(names)


def _printed_in_tutorial(block: Block, names: dict[str, Any], document: str, terminal: Terminal) -> str:
    if block.file is not None:
        Path(block.file).write_text(block.code, encoding="utf-8")
        return ""
    return terminal.run(block.code) if block.language == "sh" else _printed_by(block, names, document)


def _printed_by(block: Block, names: dict[str, Any], document: str) -> str:
    printed = io.StringIO()
    # the line numbers of a traceback are those of the document
    code = compile("\n" * (block.line - 1) + block.code, f"docs/{document}", "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, names)  # noqa: S102 - that is what is tested
    return printed.getvalue()


def _stop(names: dict[str, Any]) -> None:
    if "cluster" in names:
        names["cluster"].stop()


def check_errors(document: str) -> None:
    """Looks whether the code has the words and the kinds of the errors in a document's table."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \| (.*?) \| .+ \|$", text.split("## Errors")[1], re.MULTILINE)
    assert len(rows) > 10
    for words, kind in rows:
        for part in re.findall(r"`(.+?)`", words):
            assert part in sources(), part
        for name in re.findall(r"`(\w+Error)`", kind):
            assert issubclass(getattr(errors, name), errors.RmqError)


@cache
def sources() -> str:
    """All code of the package, with texts that stand on several lines in one piece."""
    paths = [*(ROOT / "python" / "rmqfast").rglob("*.py"), *(ROOT / "rust").rglob("src/**/*.rs")]
    paths += (ROOT / "jvm" / "src" / "main").rglob("*.java")
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    return re.sub(r"\\\n\s*", "", re.sub(r'"\s*\n\s*f?"', "", text))


def outputs() -> dict[str, str]:
    """The output of each script in `docs/examples.md`."""
    text = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    sections = (section for section in re.split(r"^(?=## )", text, flags=re.MULTILINE) if section.startswith("## "))
    return {match[1]: match[2] for section in sections if (match := _SECTION.search(section))}


def masked(text: str) -> str:
    """A text without what no two runs have alike."""
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return text
