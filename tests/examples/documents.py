"""What the documents show: code that runs, and what it prints."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rmqfast import errors

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^## .*?^`examples/(\w+)\.py`.*?^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: What no two runs have alike, and what stands for it.
_MASKS = (
    (re.compile(r"_1[0-9a-f]{10}\b"), ""),  # behind names, on a cluster that is not the example's own
    (re.compile(r"log offset \d+"), "log offset N"),
    (re.compile(r"size \d+"), "size N"),
    (re.compile(r"commitlog, \d+ bytes from byte \d+"), "commitlog, N bytes from byte N"),
)


class Block(NamedTuple):
    """Code, the line where it begins, and what it prints."""

    line: int
    code: str
    printed: str


def blocks_of(document: str) -> Iterator[Block]:
    """The Python of a document, with the text that follows it."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    for number, match in enumerate(found):
        if match[1] == "python":
            after = found[number + 1] if number + 1 < len(found) else None
            printed = after[2] if after is not None and after[1] == "text" else ""
            yield Block(text.count("\n", 0, match.start()) + 2, match[2], printed)


def check_code(
    document: str,
    *,
    readers: Mapping[str, str] | None = None,
    chosen: Callable[[str], bool] = bool,
) -> dict[str, Any]:
    """Runs the code of a document, and compares what it prints with what stands below it.

    Args:
        document: Its path below `docs`.
        readers: What the reader has of his own, such as a path or an address, and what stands for it here.
        chosen: Which blocks run.

    Returns:
        The names that the code has defined.
    """
    names: dict[str, Any] = {"__name__": document}
    try:
        for block in filter(lambda block: chosen(block.code), blocks_of(document)):
            printed = io.StringIO()
            # the line numbers of a traceback are those of the document
            text = "\n" * (block.line - 1) + with_readers(block.code, readers or {})
            code = compile(text, f"docs/{document}", "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, names)  # noqa: S102 - that is what is tested
            assert printed.getvalue() == block.printed, f"docs/{document}:{block.line} prints\n{printed.getvalue()}"
    finally:
        if "cluster" in names:
            names["cluster"].stop()
    return names


def with_readers(code: str, readers: Mapping[str, str]) -> str:
    """Code or a command with what is here in place of what the reader has."""
    for theirs, here in readers.items():
        code = code.replace(theirs, here)
    return code


def check_errors(document: str) -> None:
    """Looks whether the code has the words and the kinds of the errors in a document's table."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \| (.*?) \| .+ \|$", text.split("## Errors")[1], re.MULTILINE)
    assert len(rows) > 10
    paths = [*(ROOT / "python" / "rmqfast").rglob("*.py"), *(ROOT / "rust").rglob("src/**/*.rs")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    joined = re.sub(r'"\s*\n\s*f?"', "", sources)
    for words, kind in rows:
        for part in re.findall(r"`(.+?)`", words):
            assert part in joined, part
        for name in re.findall(r"`(\w+Error)`", kind):
            assert issubclass(getattr(errors, name), errors.RmqError)


def outputs() -> dict[str, str]:
    """What `docs/examples.md` shows of each script."""
    text = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    sections = (section for section in re.split(r"^(?=## )", text, flags=re.MULTILINE) if section.startswith("## "))
    return {match[1]: match[2] for section in sections if (match := _SECTION.search(section))}


def masked(text: str) -> str:
    """A text without what no two runs have alike."""
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return text
