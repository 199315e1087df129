"""Docstrings as the reference shows them."""

from __future__ import annotations

import itertools
import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Reads what this package writes and griffe does not know: a section `Example:`, comments that begin with `#:`."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """One object, as it was parsed."""
        if obj.docstring is not None:
            # griffe takes `Examples:` for code and `Example:` for prose
            obj.docstring.value = _EXAMPLE.sub(r"\1Examples:", obj.docstring.value)
        elif obj.is_attribute and obj.lineno is not None:
            text = _comment_above(obj.lines_collection[obj.filepath], obj.lineno)  # type: ignore[index]
            obj.docstring = griffe.Docstring(text, parent=obj) if text else None


def _comment_above(lines: list[str], line: int) -> str:
    """The comment above a line that is counted from 1."""
    above = (lines[number].strip() for number in range(line - 2, -1, -1))
    comment = list(itertools.takewhile(lambda text: text.startswith("#:"), above))
    return " ".join(text.removeprefix("#:").strip() for text in reversed(comment))
