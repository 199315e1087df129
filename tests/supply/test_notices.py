"""The notices of third parties: they go with each artefact, so they must be of the crates that are linked now."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.supply.notices import PATH, notices

ROOT = Path(__file__).parents[2]


def listed() -> set[str]:
    """The crates that the file names, with their versions."""
    head = PATH.read_text().partition("-" * 80)[0]
    return {line.partition(": ")[0] for line in head.splitlines() if line.endswith("]")}


def test_the_file_is_that_of_the_locked_crates() -> None:
    assert PATH.read_text() == notices(), "`make sbom` writes it anew"


def test_crates_of_both_libraries_are_named_in_their_locked_versions() -> None:
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    locked = {f"{package['name']} {package['version']}" for package in packages}
    assert listed() <= locked
    names = {crate.partition(" ")[0] for crate in listed()}
    assert names >= {"pyo3", "jni", "ring", "zstd-sys", "zlib-rs", "libc"}
    assert names & {"proptest", "criterion", "tempfile", "cc", "windows-sys", "rmqfast-store"} == set()


def test_texts_of_bundled_c_code_are_there() -> None:
    text = PATH.read_text()
    assert "LICENSE-BoringSSL" in text
    assert "For Zstandard software" in text
    assert "GNU GENERAL PUBLIC LICENSE" not in text.upper()
