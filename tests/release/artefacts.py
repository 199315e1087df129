"""Checks the content of an artefact: names, libraries, and the symbols that they need of a machine."""

from __future__ import annotations

import io
import lzma
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection

EXTENSION = "rmqfast/_native/_rmqfast.abi3.so"
#: That of a wheel for a free-threaded Python alone.
FREE_THREADED = "rmqfast/_native/_rmqfast.cpython-314t-{processor}-linux-gnu.so"
JAR = "rmqfast/spark/jars/rmqfast-columnar.jar"
#: A driver of one processor has executors of another.
LIBRARIES = {f"org/rmqfast/spark/linux-{name}/librmqfast_jvm.so.xz": name for name in ("x86_64", "aarch64")}
NOTICES = ("LICENSE", "THIRD-PARTY-NOTICES.txt")
_BILLS = ("rmqfast-python.cdx.json", "rmqfast-columnar.cdx.json")
#: The limit of docs/decisions/0016-size-of-a-wheel.md.
_MAX_WHEEL = 11_000_000
_PROCESSORS = {"x64": "x86_64", "AArch64": "aarch64"}
#: A platform may have an older name, too; maturin's releases differ in which one comes first.
_WHEEL = re.compile(
    r"rmqfast-[\d.]+-(cp311-abi3|cp314-cp314t)"
    r"-(\w+\.)?(manylinux|musllinux)_(\d+)_(\d+)_(x86_64|aarch64)(\.\w+)?\.whl"
)
#: What takes the place of the interpreter's lock; the stable ABI does not have it before 3.15.
_CRITICAL_SECTION = "PyCriticalSection_Begin"


class Library(NamedTuple):
    """A shared library, as its headers have it."""

    name: str
    processor: str
    needed: tuple[str, ...]
    glibc: tuple[int, int]
    #: Whether it was compiled for a free-threaded Python.
    is_free_threaded: bool


def wheel_problems(path: Path) -> Iterator[str]:
    match = _WHEEL.fullmatch(path.name)
    if match is None:
        yield f"name: expected {_WHEEL.pattern}, got {path.name}"
        return
    abi, _, kind, major, minor, processor, _ = match.groups()
    name = FREE_THREADED.format(processor=processor) if abi.endswith("t") else EXTENSION
    size = path.stat().st_size
    if size > _MAX_WHEEL:
        yield f"size: expected at most {_MAX_WHEEL:,} bytes, got {size:,}"
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        yield from name_problems(names, name)
        extension = _library(name, archive.read(name))
        if extension.is_free_threaded != is_free_threaded(path):
            yield f"{name}: expected one {'without' if is_free_threaded(path) else 'with'} the interpreter's lock"
        yield from _library_problems(extension, processor, (int(major), int(minor)) if kind == "manylinux" else None)
        if JAR in names:
            yield from jar_problems(archive.read(JAR))


def is_free_threaded(path: Path) -> bool:
    """Whether a wheel is for a free-threaded Python."""
    return "-cp314t-" in path.name


def name_problems(names: list[str], extension: str = EXTENSION) -> Iterator[str]:
    """Missing and unexpected files of a wheel."""
    expected = ["rmqfast/py.typed", "rmqfast/_native/_rmqfast.pyi", extension, JAR]
    for name in expected:
        if name not in names:
            yield f"{name} is missing"
    for bill in _BILLS:
        if not any(name.endswith(f".dist-info/sboms/{bill}") for name in names):
            yield f"{bill} is missing"
    for notice in NOTICES:
        if not any(name.endswith(f".dist-info/licenses/{notice}") for name in names):
            yield f"{notice} is missing"
    for name in names:
        if name.endswith((".pyc", ".rs", ".java")):
            yield f"{name} does not belong into a wheel"


def jar_problems(jar: bytes) -> Iterator[str]:
    """Problems of a jar: a library is missing, is of another processor, or needs too new a system."""
    with zipfile.ZipFile(io.BytesIO(jar)) as archive:
        names = archive.namelist()
        for name, processor in LIBRARIES.items():
            if name not in names:
                yield f"jar: {name} is missing"
                continue
            yield from _library_problems(_library(name, lzma.decompress(archive.read(name))), processor, (2, 17))
        for notice in NOTICES:
            if f"META-INF/{notice}" not in names:
                yield f"jar: META-INF/{notice} is missing"
        for name in names:
            if name.endswith(".class") and (version := int.from_bytes(archive.read(name)[6:8])) != 52:
                yield f"jar: {name}: expected a class of Java 8, version 52, got {version}"


def sdist_problems(path: Path) -> Iterator[str]:
    """Files that a build needs and a source archive lacks."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"Cargo.lock", *NOTICES, "README.md", "pyproject.toml", "release/build_backend.py", "release/jar.py",
              "jvm/classes/org/rmqfast/spark/RocketMQColumnar.class", "rust/jvm/Cargo.toml", "rust/python/Cargo.toml",
              "jvm/src/main/java/org/rmqfast/spark/Native.java", "python/rmqfast/py.typed"}  # fmt: skip
    for name in sorted(needed - names):
        yield f"{name} is missing"
    for name in sorted(names):
        if name.endswith((".so", ".jar", ".pyc")):
            yield f"{name} is built: a source archive has none"


def libraries(path: Path) -> Iterator[Library]:
    """Those of a wheel and of its jar."""
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.startswith("rmqfast/_native/") and name.endswith(".so"))
        yield _library(name, archive.read(name))
        with zipfile.ZipFile(io.BytesIO(archive.read(JAR))) as jar:
            for name in LIBRARIES:
                yield _library(name, lzma.decompress(jar.read(name)))


def _library_problems(library: Library, processor: str, glibc: tuple[int, int] | None) -> Iterator[str]:
    if library.processor != processor:
        yield f"{library.name}: expected one for {processor}, got {library.processor}"
    if glibc is not None and library.glibc > glibc:
        expected, got = (".".join(map(str, version)) for version in (glibc, library.glibc))
        yield f"{library.name}: expected at most GLIBC_{expected}, got GLIBC_{got}"
    if glibc is None and (foreign := [name for name in library.needed if name != "libc.so"]):
        yield f"{library.name}: expected musl's libc.so alone, got {', '.join(foreign)}"


def _library(name: str, content: bytes) -> Library:
    elf = ELFFile(io.BytesIO(content))
    needed: list[str] = []
    versions = [(0, 0)]
    is_free_threaded = False
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            needed += [tag.needed for tag in section.iter_tags("DT_NEEDED")]  # type: ignore[attr-defined]
        if isinstance(section, GNUVerNeedSection):
            versions += [_glibc(aux.name) for _, entries in section.iter_versions() for aux in entries]
        if isinstance(section, SymbolTableSection):
            is_free_threaded |= section.get_symbol_by_name(_CRITICAL_SECTION) is not None
    processor = _PROCESSORS.get(elf.get_machine_arch(), elf.get_machine_arch())
    return Library(name, processor, tuple(needed), max(versions), is_free_threaded)


def _glibc(version: str) -> tuple[int, int]:
    match = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)
