"""Files that pages about the code name exist, and ARCHITECTURE.md is short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: A path from the root of the repository: it has a slash, and ends in a slash or a suffix.
_PATH = re.compile(r"`((?:\.ci|rust|python|jvm|tests|docs|benches)/[\w./*-]+|[\w]+/)`")


#: The name of a source file, at the end of a path or alone.
_FILE = re.compile(r"`[\w./-]*?(\w+\.(?:rs|py))`")
ABOUT_CODE = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md", "docs/internals.md", "docs/decisions/*.md"]


def paths(page: str) -> list[str]:
    return sorted(set(_PATH.findall((ROOT / page).read_text())))


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/internals.md"])
def test_the_paths_of_a_page_lead_somewhere(page: str) -> None:
    packages = {f"{path.name}/" for path in (ROOT / "python/rmqfast").iterdir()}
    packages |= {f"{path.name}/" for path in (ROOT / "python/rmqfast/client").iterdir()}
    named = [path for path in paths(page) if path not in packages]
    assert named
    assert [path for path in named if not list(ROOT.glob(path.rstrip("/")))] == []


def test_the_source_files_that_pages_name_are_there() -> None:
    folders = ("rust", "python", "jvm", "tests", "benches", "website", "release")
    files = {path.name for folder in folders for kind in ("*.rs", "*.py") for path in (ROOT / folder).rglob(kind)}
    pages = [page for pattern in ABOUT_CODE for page in ROOT.glob(pattern)]
    named = {(page.name, file) for page in pages for file in _FILE.findall(page.read_text())}
    assert len(named) > 100
    assert sorted(name for name in named if name[1] not in files) == []


def test_the_guide_is_short() -> None:
    assert (ROOT / "ARCHITECTURE.md").read_text().count("\n") <= 200
