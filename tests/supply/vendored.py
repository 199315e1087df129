"""The scripts of others that the dashboard serves: unchanged files of npm packages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "python" / "rmqfast" / "dashboard" / "static"


@dataclass(frozen=True)
class Vendored:
    """A file of a package of npm.

    Attributes:
        path: The file here.
        source: The file in the package.
        licence: Its licence by SPDX; `text` has it in full.
        sha256: The hash of the file in the package.
    """

    path: Path
    package: str
    version: str
    source: str
    licence: str
    text: Path
    sha256: str

    @property
    def digest(self) -> str:
        """The hash of the file that is here."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def _of_htmx(name: str, digest: str) -> Vendored:
    return Vendored(FOLDER / name, "htmx.org", "4.0.1", f"dist/{name}", "0BSD", FOLDER / "htmx.LICENSE.txt", digest)


def _of_uplot(name: str, digest: str) -> Vendored:
    return Vendored(FOLDER / name, "uplot", "1.6.32", f"dist/{name}", "MIT", FOLDER / "uPlot.LICENSE.txt", digest)


VENDORED = (
    _of_htmx("htmx.min.js", "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"),
    _of_uplot("uPlot.iife.min.js", "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"),
    _of_uplot("uPlot.min.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"),
)
