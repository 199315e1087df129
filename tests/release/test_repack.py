"""A wheel that was packed again has the same files, in fewer bytes."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_packed_wheel_has_the_same_files_in_fewer_bytes(tmp_path: Path) -> None:
    wheel = tmp_path / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in (*ROOT.glob("release/*.py"), ROOT / "LICENSE"):
            archive.write(path, path.relative_to(ROOT), zipfile.ZIP_DEFLATED, 9)
        program = zipfile.ZipInfo("a/program", (2026, 1, 31, 12, 0, 0))
        program.external_attr = 0o100755 << 16
        program.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(program, b"")
    size, files = wheel.stat().st_size, contents(wheel)
    subprocess.run([sys.executable, ROOT / "release/repack.py", wheel], check=True)
    assert wheel.stat().st_size < size
    assert contents(wheel) == files
    assert list(tmp_path.iterdir()) == [wheel]


def contents(wheel: Path) -> list[tuple[str, tuple[int, ...], int, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        return [
            (entry.filename, entry.date_time, entry.external_attr, archive.read(entry)) for entry in archive.infolist()
        ]
