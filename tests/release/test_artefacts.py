"""The checks of a release find the problems of invented artefacts."""

from __future__ import annotations

import io
import lzma
import platform
import tarfile
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


def wheel(directory: Path, name: str, *more: str, extension: str = artefacts.EXTENSION) -> Path:
    """One of that name with an extension, and with more files, which are empty."""
    path = directory / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(extension, library())
        for each in more:
            archive.writestr(each, b"")
    return path


@pytest.mark.parametrize(
    "name",
    [
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
        "manylinux2014_x86_64.manylinux_2_17_x86_64",
        "manylinux2014_aarch64.manylinux_2_17_aarch64",
        "manylinux_2_17_aarch64",
        "musllinux_1_2_x86_64",
    ],
)
def test_a_wheel_may_have_both_names_of_its_platform(name: str, tmp_path: Path) -> None:
    path = wheel(tmp_path, f"rmqfast-0.1.0-cp311-abi3-{name}.whl")
    assert [problem for problem in artefacts.wheel_problems(path) if problem.startswith("name")] == []


@pytest.mark.parametrize("tags", ["cp311-cp311-manylinux_2_17_x86_64", "cp311-abi3-linux_x86_64", "py3-none-any"])
def test_a_wheel_for_one_python_or_any_linux_is_a_problem(tags: str, tmp_path: Path) -> None:
    (problem,) = artefacts.wheel_problems(wheel(tmp_path, f"rmqfast-0.1.0-{tags}.whl"))
    assert problem.startswith("name: expected")


def test_a_wheel_for_a_free_threaded_python_needs_an_extension_without_the_lock(tmp_path: Path) -> None:
    extension = artefacts.FREE_THREADED.format(processor="x86_64")
    name = "rmqfast-0.1.0-cp314-cp314t-manylinux_2_17_x86_64.whl"
    problems = list(artefacts.wheel_problems(wheel(tmp_path, name, extension=extension)))
    assert f"{extension} is missing" not in problems
    assert f"{extension}: expected one without the interpreter's lock" in problems


@pytest.mark.parametrize("notice", artefacts.NOTICES)
def test_a_wheel_without_a_licence_is_a_problem(notice: str, tmp_path: Path) -> None:
    others = [f"rmqfast-0.1.0.dist-info/licenses/{name}" for name in artefacts.NOTICES if name != notice]
    path = wheel(tmp_path, "rmqfast-0.1.0-cp311-abi3-manylinux_2_17_x86_64.whl", *others)
    missing = [problem for problem in artefacts.wheel_problems(path) if problem.partition(" ")[0] in artefacts.NOTICES]
    assert missing == [f"{notice} is missing"]


def jar(**files: bytes) -> bytes:
    """One with both libraries, that of this machine in the place of each, and with more files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in artefacts.LIBRARIES:
            archive.writestr(name, lzma.compress(library(), preset=0))
        for name, data in files.items():
            archive.writestr(f"org/rmqfast/spark/{name}.class", data)
    return content.getvalue()


def test_a_library_of_another_processor_is_a_problem() -> None:
    here = platform.machine()
    problems = [problem for problem in artefacts.jar_problems(jar()) if "expected one for" in problem]
    (other,) = {"x86_64", "aarch64"} - {here}
    name = next(name for name, processor in artefacts.LIBRARIES.items() if processor == other)
    assert problems == [f"{name}: expected one for {other}, got {here}"]


def test_a_jar_without_a_library_is_a_problem() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", b"")
    missing = [problem for problem in artefacts.jar_problems(content.getvalue()) if problem.endswith(".xz is missing")]
    assert missing == [f"jar: {name} is missing" for name in artefacts.LIBRARIES]


def test_a_class_of_a_newer_java_is_a_problem() -> None:
    old, new = (b"\xca\xfe\xba\xbe\x00\x00" + version.to_bytes(2) for version in (52, 61))
    problems = [problem for problem in artefacts.jar_problems(jar(Old=old, New=new)) if ".class" in problem]
    assert problems == ["jar: org/rmqfast/spark/New.class: expected a class of Java 8, version 52, got 61"]


def test_a_source_archive_says_what_it_lacks_and_what_is_built(tmp_path: Path) -> None:
    path = tmp_path / "rmqfast-0.1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("Cargo.lock", "python/rmqfast/_native/_rmqfast.abi3.so"):
            archive.addfile(tarfile.TarInfo(f"rmqfast-0.1.0/{name}"))
    problems = list(artefacts.sdist_problems(path))
    assert "release/build_backend.py is missing" in problems
    assert "Cargo.lock is missing" not in problems
    assert "python/rmqfast/_native/_rmqfast.abi3.so is built: a source archive has none" in problems
