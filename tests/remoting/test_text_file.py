"""A file of configuration is the old one or the new one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from rmqfast.errors import CorruptError, StoreIOError
from rmqfast.remoting import text_file
from rmqfast.remoting.text_file import read_text, write_text


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "conf" / "a.json"
    assert read_text(path) is None
    write_text(path, '{"中":1}')
    assert read_text(path) == '{"中":1}'


def test_the_one_before_becomes_the_backup(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in ("1", "2", "3"):
        write_text(path, text)
    assert (path.read_text(), (tmp_path / "a.json.bak").read_text()) == ("3", "2")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.json", "a.json.bak"]


@pytest.mark.parametrize("left", ["", "  \n", None])
def test_without_the_file_the_backup_is_read(tmp_path: Path, left: str | None) -> None:
    path = tmp_path / "a.json"
    write_text(path, "1")
    write_text(path, "2")
    path.unlink()
    if left is not None:
        path.write_text(left)
    assert read_text(path) == "1"


def test_a_write_that_fails_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_text(path, "1")
    (tmp_path / "a.json.tmp").mkdir()
    with pytest.raises(StoreIOError, match=r"a\.json"):
        write_text(path, "2")
    assert read_text(path) == "1"


def test_what_is_no_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"ab\xff")
    with pytest.raises(CorruptError, match="no UTF-8 at byte 2"):
        read_text(path)
    monkeypatch.setattr(text_file, "MAX_SIZE", 2)
    with pytest.raises(CorruptError, match="at most 2 bytes"):
        read_text(path)


def test_a_directory_in_its_place_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreIOError):
        read_text(tmp_path)


def test_a_file_that_is_written_anew_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("first")
    path.chmod(0o600)
    write_text(path, "second")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {"broker.conf": 0o600, "broker.conf.bak": 0o600}
