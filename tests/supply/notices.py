"""Writes THIRD-PARTY-NOTICES.txt, which each wheel and the jar carry: `make sbom`.

    python -m tests.supply.notices

It names the crates that the extension and the jar's library link on the platforms of the wheels, and has the licence
texts of each crate's own sources, those of bundled C code among them. Equal texts stand there once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .bill import crates, metadata
from .vendored import VENDORED

_ROOT = Path(__file__).parents[2]
sys.path.append(str(_ROOT / "release"))  # scripts, which know the platforms
from wheels import WHEELS  # noqa: E402

PATH = _ROOT / "THIRD-PARTY-NOTICES.txt"
_PLATFORMS = tuple(dict.fromkeys(platform.triple for platform in WHEELS))
_LIBRARIES = ("rmqfast-python", "rmqfast-jvm")
_NAME = re.compile(r"(un)?licen[sc]e|copying|notice|copyright", re.IGNORECASE)
#: The other choice of what comes under either of two licences: the GPL.
_NOT_CHOSEN = {("zstd-sys", "zstd/COPYING")}
_RULE = "-" * 80
_HEAD = """Notices of third parties

The wheels of rmqfast, and the jar in them, link the Rust crates below. Each line has a crate, its version, its licence,
and the numbers of the texts that its sources have. The texts follow.

The wheels also have scripts of npm packages, unchanged, for the dashboard; their texts are the last ones.

Besides, they have parts of Rust's standard library (MIT OR Apache-2.0), and of LLVM's libunwind and compiler-rt
(Apache-2.0 WITH LLVM-exception). The texts of these licences are among those below.
"""


def notices() -> str:
    """The text of the file.

    Raises:
        ValueError: A crate has no licence text, and not the licence of this project either.
    """
    lines: list[str] = []
    numbers: dict[str, int] = {}
    texts: list[str] = []
    whose: list[list[str]] = []
    for package in _packages():
        mine = []
        for name, text in _texts(package):
            key = " ".join(text.split())
            if key not in numbers:
                numbers[key] = len(texts) + 1
                texts.append(text)
                whose.append([])
            mine.append(numbers[key])
            whose[numbers[key] - 1].append(f"{package['name']} {package['version']}: {name}\n")
        numbered = ", ".join(map(str, sorted(set(mine))))
        lines.append(f"{package['name']} {package['version']}: {package['license']} [{numbered}]\n")
    lines += [f"{each.package} {each.version}: {each.licence} [{each.path.name}]\n" for each in VENDORED]
    for path, script in {each.text: f"{each.package} {each.version}" for each in VENDORED}.items():
        texts.append(_read(path))
        whose.append([f"{script}: {path.name}\n"])
    parts = (
        f"{_RULE}\n[{number}]\n{''.join(files)}\n{text}\n"
        for number, (files, text) in enumerate(zip(whose, texts, strict=True), 1)
    )
    return "".join((_HEAD, "\n", *lines, "\n", *parts))


def _packages() -> Iterator[dict[str, Any]]:
    linked = {crate for library in _LIBRARIES for crate in crates(library, _PLATFORMS)}
    packages = [each for each in metadata(_PLATFORMS)["packages"] if each["id"] in linked and each["source"]]
    return iter(sorted(packages, key=lambda package: (package["name"], package["version"])))


def _texts(package: dict[str, Any]) -> list[tuple[str, str]]:
    home = Path(package["manifest_path"]).parent
    files = sorted(path for path in home.rglob("*") if path.is_file() and _NAME.match(path.name))
    names = {path.relative_to(home).as_posix(): path for path in files}
    found = [(name, _read(path)) for name, path in names.items() if (package["name"], name) not in _NOT_CHOSEN]
    if found:
        return found
    if "Apache-2.0" not in re.split(r" OR |/", package["license"]):
        raise ValueError(f"{package['name']} {package['version']}: no text of {package['license']} in {sorted(names)}")
    return [("no text, taken under Apache-2.0", _read(_ROOT / "LICENSE"))]


def _read(path: Path) -> str:
    return "\n".join(line.rstrip() for line in path.read_text(encoding="utf-8").splitlines()).strip("\n")


if __name__ == "__main__":
    PATH.write_text(notices(), encoding="utf-8")
    sys.stdout.write(f"written: {PATH.name}\n")
