"""The build backend of `pip install .` and `pip wheel`: builds the jar of the Spark data source, then runs maturin.

maturin packs a jar that it finds and says nothing of one that it does not. So the jar is built first, with the native
library of this machine: of the classes in a source archive, or, in a clone, of jvm/, which needs a JDK.
`RMQFAST_NO_JAR=1` leaves it out. `make wheels` calls maturin itself, as its jar has the libraries of all platforms.

Source: PEP 517, PEP 660.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

import jar

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_ROOT = Path(__file__).parents[1]
_PACKAGED = _ROOT / "python/rmqfast/spark/jars/rmqfast-columnar.jar"
#: Its jars are what the classes are compiled against.
_PYSPARK = "pyspark==4.3.0"


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """The requirements of maturin, and PySpark if the classes must be compiled."""
    return [*maturin.get_requires_for_build_wheel(config_settings), *_to_compile()]


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """The requirements of a wheel."""
    return [*maturin.get_requires_for_build_editable(config_settings), *_to_compile()]


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """The jar, then the wheel."""
    _build_jar()
    name: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """The jar, then the wheel that points here."""
    _build_jar()
    name: str = maturin.build_editable(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """The source archive; it has the classes, so that nobody needs a JDK to build it."""
    if not jar.CLASSES.is_dir():
        sys.exit("a source archive has the classes of jvm/: `make release` compiles them and makes one")
    name: str = maturin.build_sdist(sdist_directory, config_settings)
    return name


def _to_compile() -> list[str]:
    return [] if _has_classes() or _no_jar() else [_PYSPARK]


def _has_classes() -> bool:
    """In a clone the sources may be newer."""
    return jar.CLASSES.is_dir() and not (_ROOT / ".git").exists()


def _no_jar() -> bool:
    return bool(os.environ.get("RMQFAST_NO_JAR"))


def _build_jar() -> None:
    if _no_jar():
        _PACKAGED.unlink(missing_ok=True)
        return
    if not shutil.which("cargo"):
        sys.exit("missing: cargo: install Rust, by rustup or as a package; Cargo.toml says which version is needed")
    if not _has_classes():
        _compile_classes()
    target = Path(os.environ.get("CARGO_TARGET_DIR", _ROOT / "target"))
    command = "cargo rustc --locked --release --package rmqfast-jvm --lib --crate-type cdylib -- -C strip=symbols"
    subprocess.run(command.split(), cwd=_ROOT, check=True)
    library = target / "release/librmqfast_jvm.so"
    jar.pack(jar.CLASSES, _PACKAGED, {f"linux-{platform.machine()}": library}, small=True)


def _compile_classes() -> None:
    if not (os.environ.get("JAVA_HOME") or shutil.which("javac")):
        sys.exit(
            "missing: a Java compiler for the Spark data source: install a JDK, or set RMQFAST_NO_JAR=1 to leave it out"
        )
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        sys.exit(f"missing: {_PYSPARK}, whose jars the classes of jvm/ are compiled against: pip install {_PYSPARK}")
    jar.compile_classes(Path(pyspark.origin).parent / "jars", jar.CLASSES)
