"""Builds a Python that no package of a suite has: a newer one, one without the interpreter's lock, one for musl.

It is made of Debian's source package, in a root of that suite, by its own compiler or by zig.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .roots import Root

_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: What `configure` and `make` call.
_TOOLS = ("make", "coreutils", "dash", "sed", "grep", "diffutils", "findutils", "mawk", "libc-bin")
#: Headers of what the standard library wraps.
_HEADERS = ("zlib1g-dev", "libffi-dev", "libssl-dev", "libsqlite3-dev", "libbz2-dev", "liblzma-dev")


class Compiler(NamedTuple):
    """The compiler of a Python, in the root where it runs.

    Args:
        name: Part of the root's name.
        cc: The command.
        packages: Of Debian, in that root.
        sources: Packages of Debian that are built first, each in its folder of `/src`.
        steps: What builds those sources, and sets the variables of Python's `configure`.
        flags: Of that `configure`.
        binds: Gives folders of this machine, and where the root has them.
    """

    name: str
    cc: str
    packages: tuple[str, ...]
    sources: tuple[str, ...] = ()
    steps: str = ":"
    flags: str = ""
    binds: Callable[[], dict[Path, str]] = dict


#: That of the suite itself.
GCC = Compiler("gcc", "gcc", ("gcc", "libc6-dev", *_HEADERS))


class BuiltPython(NamedTuple):
    """A Python, by what it is built of and for.

    Args:
        version: As `3.11`, or `3.14t` for one without the interpreter's lock.
        suite: The suite it is compiled in, and runs on, as on newer ones.
        source_suite: The suite that has its source.
        compiler: What it is compiled by.
    """

    version: str
    suite: str
    source_suite: str
    compiler: Compiler = GCC

    def build(self, home: Path) -> Path:
        """Its folder; it is built once.

        Args:
            home: The folder of all roots.

        Raises:
            CalledProcessError: A compiler or a mirror says what is wrong.
        """
        name = f"build-python{self.version}-{self.suite}-{self.compiler.name}"
        builder = Root(name, self.suite, "x86_64", (*_TOOLS, *self.compiler.packages))
        root = builder.make(home)
        prefix = f"/opt/python{self.version}"
        if not (root / prefix.lstrip("/") / f"bin/python{self.version}").exists():
            self._prepare(root, home)
            steps = f"{self.compiler.steps}\ncd /src/python\n./configure -q --prefix={prefix} {self._flags()}\n"
            command = ["/bin/sh", "-ec", f"{steps}make -s -j2\nmake -s install"]
            result = builder.run(home, command, binds=self.compiler.binds(), timeout=3600)
            if result.returncode != 0:
                raise subprocess.CalledProcessError(result.returncode, steps, result.stdout, result.stderr[-2000:])
            shutil.rmtree(root / "src")
        return root / prefix.lstrip("/")

    def _prepare(self, root: Path, home: Path) -> None:
        shutil.rmtree(root / "src", ignore_errors=True)
        unpack(f"python{self.version.rstrip('t')}", self.source_suite, root / "src/python", home)
        for package in self.compiler.sources:
            unpack(package, self.suite, root / "src" / package, home)
        for name, command in (("awk", "mawk"), ("cc", self.compiler.cc)):
            program = root / "usr/local/bin" / name
            program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            program.chmod(0o755)

    def _flags(self) -> str:
        lock = " --disable-gil" if self.version.endswith("t") else ""
        return f"--without-ensurepip --disable-test-modules{lock} {self.compiler.flags}"


def unpack(package: str, suite: str, folder: Path, home: Path) -> None:
    """The source of a package, as its authors released it; it is fetched once, into `sources` of the roots."""
    archives = home / "sources"
    archives.mkdir(parents=True, exist_ok=True)
    if not _archives(archives, package):
        _fetch(package, suite, archives)
    (archive,) = _archives(archives, package)
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-xf", archive, "-C", folder, "--strip-components=1"], check=True)


def _archives(folder: Path, package: str) -> list[Path]:
    return [path for path in folder.glob(f"{package}_*.orig.tar.*") if path.suffix != ".asc"]


def _fetch(package: str, suite: str, folder: Path) -> None:
    """Debian's source packages come by apt alone, which is told of a suite that this machine need not have."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "lists").mkdir()
        (place / "sources.list").write_text(f"deb-src [signed-by={_KEYS}] {_mirror()} {suite} main\n")
        # as of a root, the index of a new suite is often found expired
        where = (f"Dir::Etc::SourceList={place}/sources.list", "Dir::Etc::SourceParts=/dev/null",
                 f"Dir::State::Lists={place}/lists", "APT::Sandbox::User=root",
                 "Acquire::Check-Valid-Until=false")  # fmt: skip
        options = [word for option in where for word in ("-o", option)]
        subprocess.run(["apt-get", "-qq", *options, "update"], check=True)
        command = ["apt-get", "-qq", *options, "source", "--download-only", package]
        subprocess.run(command, check=True, cwd=place)
        for archive in _archives(place, package):
            shutil.move(archive, folder)


def _mirror() -> str:
    """The package mirror of this machine."""
    command = ("apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Origin: Debian")
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return next(line for line in lines if "security" not in line)
