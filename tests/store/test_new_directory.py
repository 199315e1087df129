"""A directory that appears whole or not at all: what is in its way, and what killed processes leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from rmqfast.errors import ArgumentError, StoreBusyError, StoreIOError
from rmqfast.store.new_directory import Mode, new_directory


def write(out: Path, name: str, mode: Mode, *parts: str) -> None:
    """Writes a file by way of a new directory, in each of its parts."""
    with new_directory(out, mode) as directory:
        for part in parts or ["part"]:
            (directory / part).mkdir()
            (directory / part / name).touch()


def names(directory: Path) -> list[str]:
    """All that is there, by path."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_only_one_writes_to_a_place(tmp_path: Path) -> None:
    with new_directory(tmp_path / "out", "append"):
        with pytest.raises(StoreBusyError, match=r"out\.partial: another process writes to it"):
            write(tmp_path / "out", "a", "append")
        assert names(tmp_path / "out.partial") == ["new"]
    assert names(tmp_path) == ["out"]


def test_what_was_to_be_replaced_returns_where_a_process_was_killed_meanwhile(tmp_path: Path) -> None:
    write(tmp_path / "out", "a", "error")
    # the state between the two moves of an overwrite
    (tmp_path / "out.partial" / "new").mkdir(parents=True)
    (tmp_path / "out").rename(tmp_path / "out.partial" / "old")
    with pytest.raises(ArgumentError, match="nothing is yet"):
        write(tmp_path / "out", "b", "error")
    assert names(tmp_path) == ["out", "out/part", "out/part/a"]


def test_files_of_a_killed_process_go_with_the_next(tmp_path: Path) -> None:
    (tmp_path / "out.partial" / "new").mkdir(parents=True)
    (tmp_path / "out.partial" / "new" / "half").touch()
    write(tmp_path / "out", "a", "error")
    assert names(tmp_path) == ["out", "out/part", "out/part/a"]


def test_an_append_that_fails_amid_its_moves_takes_them_back(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "z").touch()  # a file where a directory shall be
    with pytest.raises(StoreIOError, match="not a directory"):
        write(tmp_path / "out", "file", "append", "a", "z")
    assert names(tmp_path) == ["out", "out/z"]


def test_strangers_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "mine").touch()
    with pytest.raises(ArgumentError, match=r"OUT\.partial is free"):
        write(tmp_path / "out", "a", "append")
    (tmp_path / "file").touch()
    with pytest.raises(ArgumentError, match="got the file"):
        write(tmp_path / "file", "a", "append")
    with pytest.raises(ArgumentError, match="ends in a name"):
        write(Path("/"), "a", "overwrite")
    assert names(tmp_path) == ["file", "out.partial", "out.partial/mine"]


def test_behind_a_link_the_directory_is_replaced_not_the_link(tmp_path: Path) -> None:
    write(tmp_path / "disk" / "out", "a", "error")
    (tmp_path / "out").symlink_to(tmp_path / "disk" / "out")
    write(tmp_path / "out", "b", "overwrite")
    assert (tmp_path / "out").is_symlink()
    assert names(tmp_path / "disk") == ["out", "out/part", "out/part/b"]
