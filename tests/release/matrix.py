"""Installs what `make wheels` made on other machines, and asks what works.

    python -m tests.release.matrix DIRECTORY ROOTS

A machine is a root file system with nothing but a Python, or nothing but a Java: `roots.py`. Each line of the table
is a machine and what was asked of it: the wheel alone, the wheel with one extra, the jar with a Spark.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from tests.golden_stores import unpack

from . import columnar, fresh_machine, musl, smoke
from .built_python import BuiltPython
from .roots import DEBIAN, Root, missing_tools

_ROOT = Path(__file__).parents[2]
#: Wheels may ask for the library of C++ as well, as `manylinux` says.
_PYTHON = ("python3", "libc-bin", "libstdc++6")
#: What a Python links that is built here; those of other names in each suite come besides.
_LIBRARIES = ("libc-bin", "libstdc++6", "zlib1g", "libsqlite3-0", "libbz2-1.0", "liblzma5")
_OF_BULLSEYE = ("libffi7", "libssl1.1")
#: DuckDB has no wheel for musl.
_OF_MUSL = tuple(extra for extra in smoke.EXTRAS if extra != "duckdb")
#: DuckDB, deltalake and pyiceberg have no wheel for a free-threaded Python, and Polars one for the stable ABI alone.
_OF_FREE_THREADED = tuple(extra for extra in smoke.EXTRAS if extra not in {"polars", "duckdb", "delta", "iceberg"})
_JAVA = ("dash", "coreutils", "libc-bin")


class Machine(NamedTuple):
    """A root with a Python, and what wheels it takes."""

    root: Root
    python: str
    platform: str
    extras: tuple[str, ...] = tuple(smoke.EXTRAS)
    #: What is built, where the root's suite has no such Python.
    built: BuiltPython | None = None

    @property
    def is_free_threaded(self) -> bool:
        """It has wheels of its own, and no stable ABI."""
        return self.python.endswith("t")

    @property
    def wheel(self) -> str:
        """The name of the one that it takes, as a pattern."""
        kind = "musllinux" if self.platform.endswith("-musl") else "manylinux"
        abi = f"cp{self.python.replace('.', '')}" if self.is_free_threaded else "abi3"
        return f"rmqfast-*-{abi}-*{kind}*_{self.root.processor}.whl"


class Jvm(NamedTuple):
    """A root with a Java, and the environment whose Spark runs on it."""

    root: Root
    java: str
    environment: str


def _built(root: Root, platform: str, built: BuiltPython, extras: tuple[str, ...] = tuple(smoke.EXTRAS)) -> Machine:
    return Machine(root, built.version, platform, extras, built)


_PYTHON_OF_BULLSEYE = BuiltPython("3.11", "bullseye", "bookworm")
MACHINES = (
    # the oldest glibc that Debian's mirrors still have, 2.31; its own Python is 3.9
    _built(
        Root("debian-11-x86_64", "bullseye", "x86_64", (*_LIBRARIES, *_OF_BULLSEYE)),
        "x86_64-manylinux_2_31",
        _PYTHON_OF_BULLSEYE,
    ),
    Machine(Root("debian-12-x86_64", "bookworm", "x86_64", _PYTHON), "3.11", "x86_64-manylinux_2_36"),
    Machine(Root("debian-13-x86_64", "trixie", "x86_64", _PYTHON), "3.13", "x86_64-manylinux_2_40"),
    Machine(Root("debian-12-aarch64", "bookworm", "aarch64", _PYTHON), "3.11", "aarch64-manylinux_2_36"),
    Machine(Root("debian-13-aarch64", "trixie", "aarch64", _PYTHON), "3.13", "aarch64-manylinux_2_40"),
    _built(
        Root("debian-12-free-threaded-x86_64", "bookworm", "x86_64", (*_LIBRARIES, "libffi8", "libssl3")),
        "x86_64-manylinux_2_36",
        BuiltPython("3.14t", "bookworm", "forky"),
        _OF_FREE_THREADED,
    ),
    # musl 1.2.3; pyarrow has parts that 1.2.4 and newer alone can load
    _built(
        Root("debian-12-musl-x86_64", "bookworm", "x86_64", ("musl",)),
        "x86_64-unknown-linux-musl",
        BuiltPython("3.11", "bookworm", "bookworm", musl.zig("x86_64")),
        ("polars", "broker", "otel"),
    ),
    # musl 1.2.5
    _built(
        Root("debian-13-musl-x86_64", "trixie", "x86_64", ("musl",)),
        "x86_64-unknown-linux-musl",
        BuiltPython("3.11", "bookworm", "bookworm", musl.zig("x86_64")),
        _OF_MUSL,
    ),
    _built(
        Root("debian-13-musl-aarch64", "trixie", "aarch64", ("musl",)),
        "aarch64-unknown-linux-musl",
        BuiltPython("3.11", "bookworm", "bookworm", musl.zig("aarch64")),
        _OF_MUSL,
    ),
)

#: Where the README is read: nothing but a Python, and a Java for Spark.
READERS = (
    _built(
        Root("reader-debian-11-x86_64", "bullseye", "x86_64", (*_LIBRARIES, *_OF_BULLSEYE, *fresh_machine.PACKAGES)),
        "x86_64-manylinux_2_31",
        _PYTHON_OF_BULLSEYE,
    ),
    Machine(
        Root("reader-debian-12-x86_64", "bookworm", "x86_64", (*_PYTHON, *fresh_machine.PACKAGES)),
        "3.11",
        "x86_64-manylinux_2_36",
    ),
)


def _jvm(name: str, suite: str, version: int, environment: str, processor: str = "x86_64") -> Jvm:
    home = f"/usr/lib/jvm/java-{version}-openjdk-{DEBIAN[processor]}"
    root = Root(name, suite, processor, (f"openjdk-{version}-jre-headless", *_JAVA))
    return Jvm(root, f"{home}/jre/bin/java" if version == 8 else f"{home}/bin/java", environment)


JVMS = (
    _jvm("java-8-x86_64", "sid", 8, ".venv-spark35"),
    _jvm("java-11-x86_64", "bullseye", 11, ".venv-spark35"),
    _jvm("java-17-x86_64", "bullseye", 17, ".venv-spark35"),
    _jvm("java-17-x86_64", "bullseye", 17, ".venv-spark40"),
    _jvm("java-17-x86_64", "bullseye", 17, ".venv"),
    _jvm("java-21-x86_64", "trixie", 21, ".venv"),
    _jvm("java-17-aarch64", "bookworm", 17, ".venv"),
)


class Asked(NamedTuple):
    """A line of the table."""

    machine: str
    what: str
    result: str


class Matrix(NamedTuple):
    """The checks and their machines.

    Args:
        directory: What `make wheels` made.
        roots: The folder of all roots.
        workplace: A folder that is removed afterwards.
        store: Of a real broker.
    """

    directory: Path
    roots: Path
    workplace: Path
    store: Path

    def lines(self) -> Iterator[Asked]:
        """Asks one after the other."""
        for machine in MACHINES:
            python = f"Python {machine.python}"
            if problem := self._give_python(machine):
                yield Asked(machine.root.name, python, problem)
                continue
            for extra in ("", *machine.extras):
                yield Asked(machine.root.name, f"{python}, {extra or 'no extra'}", self._of_python(machine, extra))
            if machine.is_free_threaded:
                yield Asked(machine.root.name, f"{python}, many threads", self._of_python(machine, "", "threads"))
        for machine in READERS:
            problem = self._give_python(machine)
            yield Asked(machine.root.name, "README, typed", problem or self._of_reader(machine))
        for jvm in JVMS:
            yield self._of_jvm(jvm)

    def _give_python(self, machine: Machine) -> str:
        """Makes the machine; what went wrong, as where a mirror lacks a source that its index names."""
        try:
            root = machine.root.make(self.roots)
            place = root / f"usr/bin/python{machine.python}"
            if machine.built and not place.is_symlink():  # it leads somewhere in there alone
                built = machine.built.build(self.roots)
                shutil.copytree(built, root / f"opt/{built.name}", symlinks=True, dirs_exist_ok=True)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(f"/opt/{built.name}/bin/python{machine.python}")
        except subprocess.CalledProcessError as error:
            return f"not made: {error}"
        return ""

    def _of_python(self, machine: Machine, extra: str, script: str = "smoke") -> str:
        site = self.workplace / f"{machine.root.name}-{extra or 'none'}"
        if problem := self._install(machine, extra, site):
            return f"not installed: {problem}"
        binds = {site: "/site", self.store: "/store", Path(smoke.__file__).parent: "/asked/tests/release"}
        environment = {"PYTHONPATH": "/site:/asked", "RUST_BACKTRACE": "0"}
        workplace = f"/root/{uuid4()}"
        python = (f"/usr/bin/python{machine.python}", *(() if extra else ("-W", "error")))  # others may warn
        command = (*python, "-m", f"tests.release.{script}", "/store", workplace, *([extra] if extra else ()))
        result = machine.root.run(self.roots, command, binds=binds, environment=environment, timeout=1800)
        for used in (site, machine.root.path(self.roots) / workplace.lstrip("/")):  # a commit log has a gigabyte
            shutil.rmtree(used, ignore_errors=True)
        lines = result.stdout.splitlines()
        if result.returncode == 0:
            return f"passed: {', '.join(line.partition(': ')[2] for line in lines)}"
        return "; ".join([line for line in lines if line.startswith("failed")] or result.stderr.splitlines()[-3:])

    def _of_reader(self, machine: Machine) -> str:
        wheels = self.workplace / machine.root.name
        if problem := fresh_machine.fetch(self._wheel(machine), _pip_options(machine), self._pyspark(), wheels):
            return f"not fetched: {problem}"
        read = fresh_machine.read(machine.root, self.roots, machine.python, wheels)
        shutil.rmtree(wheels)
        return read

    def _install(self, machine: Machine, extra: str, site: Path) -> str:
        """The error, or nothing."""
        # by its path: an index may have one of the same version
        requirement = f"rmqfast{f'[{extra}]' if extra else ''} @ {self._wheel(machine).as_uri()}"
        source = ("--target", str(site), "--find-links", str(self._pyspark()))
        command = (*installer(machine), "--quiet", *source, requirement)
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        return " ".join(result.stderr.split()) if result.returncode != 0 else ""

    def _wheel(self, machine: Machine) -> Path:
        (wheel,) = self.directory.glob(machine.wheel)
        return wheel

    def _pyspark(self) -> Path:
        """A folder with its wheel: it comes as an archive, which would be built for each machine anew."""
        folder = self.roots / "wheels"
        if not list(folder.glob("pyspark-*.whl")):
            dev = (_ROOT / "requirements/dev.in").read_text()
            pinned = re.findall(r"^pyspark==\S+", dev, re.MULTILINE)
            command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
            subprocess.run([*command, *pinned], check=True)
        return folder

    def _of_jvm(self, jvm: Jvm) -> Asked:
        (spark,) = (_ROOT / jvm.environment).glob("lib/python3.*/site-packages/pyspark/jars")
        (core,) = spark.glob("spark-core_*.jar")
        problems = columnar.check(
            jvm.root,
            self.roots,
            java=jvm.java,
            spark=spark,
            jar=self.directory / "rmqfast-columnar.jar",
            store=self.store,
            workplace=self.workplace / "asked",
        )
        what = f"Spark {core.stem.rpartition('-')[2]}, rocketmq-columnar"
        return Asked(jvm.root.name, what, "; ".join(("failed", *problems)) if problems else "passed: a query, a panic")


def installer(machine: Machine) -> tuple[str, ...]:
    """The command that installs for another machine."""
    # pip knows wheels for a free-threaded Python where there is none to ask
    return _pip(machine) if machine.is_free_threaded else _uv(machine)


def _uv(machine: Machine) -> tuple[str, ...]:
    target = ("--python-platform", machine.platform, "--python-version", machine.python, "--only-binary", ":all:")
    return ("uv", "pip", "install", *target, "--reinstall-package", "rmqfast")


def _pip(machine: Machine) -> tuple[str, ...]:
    return (sys.executable, "-m", "pip", "install", *_pip_options(machine))


def _pip_options(machine: Machine) -> tuple[str, ...]:
    """Of pip, that say which wheels a machine takes: each platform is named to it."""
    processor, _, newest = machine.platform.partition("-manylinux_2_")
    platforms = [f"--platform=manylinux_2_{minor}_{processor}" for minor in range(int(newest), 16, -1)]
    python = ("--python-version", machine.python.rstrip("t"), "--implementation", "cp", "--only-binary=:all:")
    abis = [f"cp{machine.python.replace('.', '')}", "none", *(() if machine.is_free_threaded else ("abi3",))]
    return (*platforms, *python, *(f"--abi={abi}" for abi in abis))


def main(directory: Path, roots: Path) -> int:
    """Prints a line as each is known, then writes the table beside the artefacts; 0 if all passed."""
    if problem := missing_tools():
        sys.exit(problem)
    lines = []
    with tempfile.TemporaryDirectory() as workplace:
        store = unpack("basic-4.9.4", Path(workplace, "golden"))
        for line in Matrix(directory, roots, Path(workplace), store).lines():
            print(" | ".join(line), flush=True)
            lines.append(line)
    table = ["| machine | what | result |", "| --- | --- | --- |", *(f"| {' | '.join(line)} |" for line in lines)]
    (directory / "matrix.md").write_text("\n".join(table) + "\n")
    return 1 if any(not line.result.startswith("passed") for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))
