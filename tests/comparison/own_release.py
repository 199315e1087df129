"""What rmqfast's next or newest release is, by the files that make it: no registry need be asked."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

from .registries import Release

_ROOT = Path(__file__).parents[2]
sys.path.append(str(_ROOT / "release"))  # scripts, which know the platforms and the version
from plan import version  # noqa: E402
from wheels import WHEELS  # noqa: E402


def own_release() -> Release:
    """Version of `Cargo.toml`, day of `CHANGELOG.md`, wheels of `release/wheels.py`, the rest of `pyproject.toml`."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.search(rf"^## \[{re.escape(version())}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.MULTILINE)
    return Release(
        version=version(),
        date=heading[1] if heading else "not released yet",
        files=tuple(f"wheel: {platform.name}" for platform in WHEELS),
        runtime=f"Python {project['requires-python']}",
        needs=tuple(project["dependencies"]),
    )
