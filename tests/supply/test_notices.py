"""The notices of third parties: they go with each artefact, so they must be of the crates that are linked now."""

from __future__ import annotations

import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

from tests.supply.notices import PATH, notices
from tests.supply.vendored import VENDORED, Vendored

ROOT = Path(__file__).parents[2]


def listed() -> set[str]:
    """The crates that the file names, with their versions."""
    head = PATH.read_text().partition("-" * 80)[0]
    scripts = {f"{each.package} {each.version}" for each in VENDORED}
    return {line.partition(": ")[0] for line in head.splitlines() if line.endswith("]")} - scripts


@pytest.mark.parametrize("script", VENDORED, ids=lambda script: script.path.name)
def test_scripts_are_those_of_their_packages(script: Vendored) -> None:
    assert script.digest == script.sha256
    assert f"{script.package} {script.version}: {script.licence} [{script.path.name}]" in PATH.read_text()


@pytest.mark.long
@pytest.mark.parametrize("script", VENDORED, ids=lambda script: script.path.name)
def test_the_registry_has_the_same_scripts(script: Vendored, tmp_path: Path) -> None:
    command = ["npm", "pack", "--silent", f"{script.package}@{script.version}"]
    archive = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()
    with tarfile.open(tmp_path / archive) as files:
        member = files.extractfile(f"package/{script.source}")
        assert member is not None
        assert member.read() == script.path.read_bytes()


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
