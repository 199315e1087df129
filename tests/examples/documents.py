"""What the documents show: code that runs, and what it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
