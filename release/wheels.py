"""Builds what is released: a wheel for each platform, the jar in each of them, and the source archive.

    python release/wheels.py DIRECTORY [PLATFORM ...]
    python release/wheels.py --targets

zig compiles and links for every platform, so that one machine makes them all, against a C library as old as each name
says. The directory gets the wheels, the jar by itself, and the source archive. The second prints the targets of Rust
whose standard libraries that takes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import jar

_ROOT = Path(__file__).parents[1]
_TARGET = Path(os.environ.get("CARGO_TARGET_DIR", _ROOT / "target"))
_PACKAGED = _ROOT / "python/rmqfast/spark/jars/rmqfast-columnar.jar"
#: The oldest C library of GNU that the jar's libraries run on: that of the wheels.
_GLIBC = "2.17"


class Platform(NamedTuple):
    """A platform of wheels."""

    triple: str
    compatibility: str
    #: As `3.14t`: without the stable ABI, which no free-threaded Python has before 3.15.
    free_threaded: str = ""

    @property
    def name(self) -> str:
        """The platform in a wheel's name, after the Python if that is free-threaded."""
        python = f"cp{self.free_threaded.replace('.', '')}-" if self.free_threaded else ""
        return f"{python}{self.compatibility}_{self.triple.partition('-')[0]}"

    @property
    def options(self) -> list[str]:
        """Of maturin; it knows the ABI of each Python, so that none has to be here."""
        target = ["--target", self.triple, "--compatibility", self.compatibility]
        if not self.free_threaded:
            return target
        return [*target, "--interpreter", f"python{self.free_threaded}", "--no-default-features"]


WHEELS = (
    Platform("x86_64-unknown-linux-gnu", "manylinux_2_17"),
    Platform("aarch64-unknown-linux-gnu", "manylinux_2_17"),
    Platform("x86_64-unknown-linux-musl", "musllinux_1_2"),
    Platform("aarch64-unknown-linux-musl", "musllinux_1_2"),
    Platform("x86_64-unknown-linux-gnu", "manylinux_2_17", free_threaded="3.14t"),
)
#: Spark's: a driver of one processor has executors of another, so every wheel has the libraries of both.
LIBRARIES = {"linux-x86_64": "x86_64-unknown-linux-gnu", "linux-aarch64": "aarch64-unknown-linux-gnu"}


def build(directory: Path, platforms: list[Platform]) -> None:
    """Builds the jar, then the wheels that hold it, then the source archive.

    Args:
        directory: Where all goes.
        platforms: Of the wheels.

    Raises:
        CalledProcessError: A tool says what is wrong.
    """
    from repack import repack  # it needs a package, and `--targets` is asked before there is an environment

    _check_targets(targets(platforms))
    directory.mkdir(parents=True, exist_ok=True)
    libraries = {name: _library(triple) for name, triple in LIBRARIES.items()}
    jar.compile_classes(Path(sysconfig.get_path("purelib"), "pyspark/jars"), jar.CLASSES)
    jar.pack(jar.CLASSES, _PACKAGED, libraries, small=True)
    shutil.copyfile(_PACKAGED, directory / _PACKAGED.name)
    bills = _bills(directory / "sbom")
    for platform in platforms:
        _run("maturin", "build", "--release", "--zig", *platform.options, "--out", str(directory), *bills)
    for wheel in sorted(directory.glob("*.whl")):
        repack(wheel)
    _run("maturin", "sdist", "--out", str(directory))


def _library(triple: str) -> Path:
    _run("cargo-zigbuild", "rustc", "--locked", "--release", "--package", "rmqfast-jvm", "--lib",
         "--crate-type", "cdylib", "--target", f"{triple}.{_GLIBC}", "--", "-C", "strip=symbols")  # fmt: skip
    return _TARGET / triple / "release/librmqfast_jvm.so"


def _bills(directory: Path) -> list[str]:
    _run(sys.executable, "-m", "tests.supply.bill", str(_PACKAGED), str(directory))
    names = ("rmqfast-python.cdx.json", "rmqfast-columnar.cdx.json")
    return [f"--sbom-include={directory / name}" for name in names]


def targets(platforms: list[Platform]) -> set[str]:
    """The targets whose Rust standard library is needed."""
    return {*LIBRARIES.values(), *(platform.triple for platform in platforms)}


def _check_targets(triples: set[str]) -> None:
    """Says what is missing before an hour of building, not behind it."""
    installed = subprocess.run(("rustup", "target", "list", "--installed"), capture_output=True, text=True, check=True)
    missing = sorted(triples - set(installed.stdout.split()))
    if missing:
        sys.exit(f"missing: the Rust standard library of {', '.join(missing)}: rustup target add {' '.join(missing)}")


def _run(*command: str) -> None:
    sys.stdout.write(f"$ {' '.join(command)}\n")
    sys.stdout.flush()
    subprocess.run(command, cwd=_ROOT, check=True)


def main(directory: str, *names: str) -> None:
    """Builds the named platforms, or all."""
    if directory == "--targets":
        sys.stdout.write(" ".join(sorted(targets([*WHEELS]))) + "\n")
        return
    known = {platform.name: platform for platform in WHEELS}
    unknown = set(names) - set(known)
    if unknown:
        sys.exit(f"no such platform: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    build(Path(directory), [known[name] for name in names or known])


if __name__ == "__main__":
    main(*sys.argv[1:])
