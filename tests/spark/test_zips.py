"""Zip files on a worker's path are read again when they change, and only then."""

from __future__ import annotations

import importlib
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from rmqfast.spark.zips import read_directories_once


def write(archive: Path, module: str) -> None:
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(f"{module}.py", f"name = {module!r}")


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zip file with a module in it, on the path of a process that reads directories once."""
    path = tmp_path / "modules.zip"
    write(path, "zips_first")
    monkeypatch.syspath_prepend(path)
    monkeypatch.setattr(zipimport.zipimporter, "invalidate_caches", zipimport.zipimporter.invalidate_caches)
    for name in ("zips_first", "zips_second"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    read_directories_once()
    importlib.import_module("zips_first")
    assert str(path) in sys.path_importer_cache
    importlib.invalidate_caches()
    return path


def test_a_module_that_was_added_is_found(archive: Path) -> None:
    write(archive, "zips_second")
    importlib.invalidate_caches()
    assert importlib.import_module("zips_second").name == "zips_second"


def test_a_file_that_stays_as_it_is_is_not_read_again(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_directory = zipimport._read_directory  # type: ignore[attr-defined]  # noqa: SLF001 - the reads of Python itself are counted

    def noted(path: str) -> object:
        read.append(path)
        return read_directory(path)

    monkeypatch.setattr(zipimport, "_read_directory", noted)
    importlib.invalidate_caches()
    assert str(archive) not in read
    write(archive, "zips_third")
    importlib.invalidate_caches()
    assert str(archive) in read
