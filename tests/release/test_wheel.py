"""The wheel alone, without its extras and without this source tree, reads a store."""

from __future__ import annotations

import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

from tests.golden_stores import unpack

from . import artefacts, smoke

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel() -> Path:
    wheels = list((ROOT / "dist").glob("rmqfast-*.whl"))
    assert len(wheels) == 1, f"one wheel expected in dist/, found {wheels}: make wheel"
    return wheels[0]


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has this wheel and nothing else."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    command: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(command, check=True)
    return python


def test_an_empty_environment_has_all_that_needs_no_extra(python: Path, tmp_path: Path) -> None:
    store = unpack("basic-4.9.4", tmp_path / "golden")
    command: list[str | Path] = [python, "-I", smoke.__file__, store, tmp_path / "work"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["passed"] * len(smoke.ALWAYS)


def test_the_command_line_without_its_extra_says_the_one_command_to_type(python: Path, tmp_path: Path) -> None:
    command: list[str | Path] = [python.with_name("rmqfast"), "store", "info", tmp_path]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert (result.stdout + result.stderr).count("\n") == 1
    assert "pip install 'rmqfast[cli]'" in result.stdout + result.stderr


def test_the_command_line_without_its_extra_has_what_serves(python: Path, tmp_path: Path) -> None:
    for words, expected in ((["--version"], "rmqfast "), (["server", "-p"], "\nlistenPort=")):
        command: list[str | Path] = [python.with_name("rmqfast"), *words]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert expected in result.stdout


def test_the_wheel_is_one_for_every_python_and_has_what_it_should(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(n for n in names if n.endswith(".dist-info/METADATA"))).decode()
        with zipfile.ZipFile(archive.open(artefacts.JAR)) as jar:
            inside = set(jar.namelist())
    assert list(artefacts.name_problems(names)) == []
    assert {f"META-INF/{notice}" for notice in artefacts.NOTICES} <= inside
    assert len(inside & set(artefacts.LIBRARIES)) == 1, "that of this machine"
    assert not [line for line in metadata.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
