"""Settings that all builds of the extension share."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import rmqfast
from rmqfast._native._rmqfast import panic

ROOT = Path(__file__).parents[2]


def test_the_version_is_that_of_the_workspace() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    assert rmqfast.__version__ == workspace["package"]["version"]


def test_unsafe_code_stands_in_the_files_that_the_guide_names() -> None:
    (named,) = re.findall(r"^- `unsafe` stands in (.*?)\. ", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    sources = sorted(ROOT.glob("rust/*/src/**/*.rs"))
    found = {str(path.relative_to(ROOT)) for path in sources if re.search(r"\bunsafe\s*\{", path.read_text())}
    assert found == set(re.findall(r"`([^`]+)`", named))


def test_a_panic_is_an_exception() -> None:
    with pytest.raises(BaseException, match="on request") as caught:
        panic("on request")
    assert type(caught.value).__name__ == "PanicException"
