"""The code in `docs/clients.md` runs and prints what stands below it; the texts of its errors are those of the code."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

from rmqfast import errors

from .documents import ROOT, blocks_of


def test_the_code_of_the_document_runs_and_prints_what_stands_below_it() -> None:
    names: dict[str, Any] = {"__name__": "clients.md"}
    try:
        for block in blocks_of("clients.md"):
            printed = io.StringIO()
            # the line numbers of a traceback are those of the document
            code = compile("\n" * (block.line - 1) + block.code, "docs/clients.md", "exec")
            with contextlib.redirect_stdout(printed):
                exec(code, names)  # noqa: S102 - that is what is tested
            assert printed.getvalue() == block.printed, f"docs/clients.md:{block.line}"
    finally:
        if "cluster" in names:
            names["cluster"].stop()


def test_the_errors_of_the_document_are_raised_with_these_words() -> None:
    text = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \| (.*?) \| .+ \|$", text.split("## Errors")[1], re.MULTILINE)
    assert len(rows) > 10
    paths = [*(ROOT / "python" / "rmqfast").rglob("*.py"), *(ROOT / "rust").rglob("src/**/*.rs")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    for words, kind in rows:
        for part in re.findall(r"`(.+?)`", words):
            assert part in sources, part
        for name in re.findall(r"`(\w+Error)`", kind):
            assert issubclass(getattr(errors, name), errors.RmqError)
