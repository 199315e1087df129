"""What the checks of a release find in artefacts that are made up."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.release import artefacts


def library() -> bytes:
    """Some library, as a wheel has one."""
    found = find_spec("lz4.block._block")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).read_bytes()


def wheel(directory: Path, name: str, *more: str) -> Path:
    """One of that name with an extension, and with more files, which are empty."""
    path = directory / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(artefacts.EXTENSION, library())
        for each in more:
            archive.writestr(each, b"")
    return path


@pytest.mark.parametrize(
    "platform",
    [
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
        "manylinux2014_x86_64.manylinux_2_17_x86_64",
        "manylinux2014_aarch64.manylinux_2_17_aarch64",
        "manylinux_2_17_aarch64",
        "musllinux_1_2_x86_64",
    ],
)
def test_a_wheel_may_have_both_names_of_its_platform(platform: str, tmp_path: Path) -> None:
    path = wheel(tmp_path, f"rmqfast-0.1.0-cp311-abi3-{platform}.whl")
    assert [problem for problem in artefacts.wheel_problems(path) if problem.startswith("name")] == []


@pytest.mark.parametrize("tags", ["cp311-cp311-manylinux_2_17_x86_64", "cp311-abi3-linux_x86_64", "py3-none-any"])
def test_a_wheel_for_one_python_or_any_linux_is_a_problem(tags: str, tmp_path: Path) -> None:
    (problem,) = artefacts.wheel_problems(wheel(tmp_path, f"rmqfast-0.1.0-{tags}.whl"))
    assert problem.startswith("name: expected")


@pytest.mark.parametrize("notice", artefacts.NOTICES)
def test_a_wheel_without_a_licence_is_a_problem(notice: str, tmp_path: Path) -> None:
    others = [f"rmqfast-0.1.0.dist-info/licenses/{name}" for name in artefacts.NOTICES if name != notice]
    path = wheel(tmp_path, "rmqfast-0.1.0-cp311-abi3-manylinux_2_17_x86_64.whl", *others)
    missing = [problem for problem in artefacts.wheel_problems(path) if problem.partition(" ")[0] in artefacts.NOTICES]
    assert missing == [f"{notice} is missing"]
