"""Errors of a build with missing parts: no wheel is made without its jar."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A source tree without classes and without a jar, as far as the build backend looks at it."""
    shutil.copytree(ROOT / "release", tmp_path / "archive/release", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "archive")
    return tmp_path / "archive"


def backend(archive: Path, call: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A call of it, as pip makes it, with the tools of a folder alone."""
    script = f"import sys; sys.path.insert(0, 'release'); import build_backend; print(build_backend.{call})"
    command = [sys.executable, "-c", script]
    without = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "RMQFAST_NO_JAR"}}
    variables = without | {"PATH": str(path)} | environment
    return subprocess.run(command, cwd=archive, env=variables, capture_output=True, text=True, check=False)


def test_without_cargo_it_says_so(archive: Path, tmp_path: Path) -> None:
    result = backend(archive, "build_wheel('out')", tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("missing: cargo")


def test_without_a_java_compiler_a_clone_says_so(archive: Path, tmp_path: Path) -> None:
    (tools := tmp_path / "tools").mkdir()
    (tools / "cargo").symlink_to(shutil.which("cargo") or "")
    result = backend(archive, "build_wheel('out')", tools)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("missing: a Java compiler")
    assert "RMQFAST_NO_JAR=1" in result.stderr


def test_pyspark_is_asked_for_where_classes_have_to_be_compiled(archive: Path, tmp_path: Path) -> None:
    asked = "get_requires_for_build_wheel()"
    path = Path(os.environ["PATH"].partition(os.pathsep)[0])
    (pinned,) = re.findall(r"^pyspark==\S+", (ROOT / "requirements/dev.in").read_text(), re.MULTILINE)
    assert pinned in backend(archive, asked, path).stdout
    assert "pyspark==" not in backend(archive, asked, path, RMQFAST_NO_JAR="1").stdout
    (archive / "jvm/classes").mkdir(parents=True)
    assert "pyspark==" not in backend(archive, asked, path).stdout


@pytest.mark.parametrize(
    ("variables", "is_refused"),
    [({"CARGO_FEATURE_WHEEL": "1"}, True), ({"CARGO_FEATURE_WHEEL": "1", "RMQFAST_NO_JAR": "1"}, False), ({}, False)],
    ids=["maturin", "maturin, without a jar", "cargo"],
)
def test_maturin_alone_refuses_to_leave_out_the_jar(
    variables: dict[str, str], is_refused: bool, tmp_path: Path
) -> None:
    program = tmp_path / "build"
    subprocess.run(["rustc", "--edition", "2024", ROOT / "rust/python/build.rs", "-o", program], check=True)
    (place := tmp_path / "rust/python").mkdir(parents=True)
    result = subprocess.run([program], cwd=place, env=variables, capture_output=True, text=True, check=True)
    assert ("cargo::error=the wheel would have no jar" in result.stdout) is is_refused


@pytest.mark.parametrize("program", ["tests.release.check", "tests.release.matrix", "tests.supply.bill"])
def test_what_makes_a_release_runs_where_the_package_is_not_installed(program: str) -> None:
    code = f"import sys; sys.modules['rmqfast'] = None; import {program}"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_targets_of_rust_are_printed_where_no_package_is_installed() -> None:
    command: list[str | Path] = [sys.executable, "-S", ROOT / "release/wheels.py", "--targets"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {"x86_64-unknown-linux-gnu", "aarch64-unknown-linux-musl"} <= set(done.stdout.split())
