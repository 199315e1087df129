"""The environment of the recipes, and the files that their pages show."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.examples.documents import with_readers

ROOT = Path(__file__).parents[2]
_RECIPES = ROOT / "docs/recipes"
_BIN = ROOT / ".venv-recipes/bin"
#: "`orders.py`:", and the block below it.
_FILE = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PATIENCE = 240
#: None of them shall tell its makers of a run.
_SILENT = {"DAGSTER_DISABLE_TELEMETRY": "yes", "DO_NOT_TRACK": "1", "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False"}


def lay_out(page: str, directory: Path, readers: Mapping[str, str]) -> None:
    """Writes the files of a page into a directory, with what is here in place of what the reader has."""
    files = _FILE.findall((_RECIPES / page).read_text(encoding="utf-8"))
    assert files, f"{page}: no files"
    for name, text in files:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(with_readers(text, readers), encoding="utf-8")


def run(*command: str | Path, directory: Path, **variables: str) -> str:
    """The output of a command of the environment; a failure raises an error with the output."""
    assert (_BIN.parent / ".editable").exists(), "`make test-recipes` makes the environment"
    program, *arguments = command
    done = subprocess.run(
        [_BIN / program, *arguments],
        cwd=directory,
        env={**os.environ, **_SILENT, "PATH": f"{_BIN}:{os.environ['PATH']}", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout
