"""Makes the jar of the Spark data source `rocketmq-columnar`.

    python release/jar.py classes SPARK_JARS DIRECTORY
    python release/jar.py pack DIRECTORY JAR linux-x86_64=LIBRARY ...
    python release/jar.py pack-small DIRECTORY JAR linux-x86_64=LIBRARY ...

The first compiles jvm/ against the jars of a PySpark, the newest that is supported: a few classes need its
interfaces. The others are, byte for byte, those that the oldest one gives (tests/release/test_jar.py). All are for
Java 8, as Spark 3.5 still runs on it. The second packs them with a native library for each platform, and with the
licences of what those link; the third compresses the libraries by xz, which takes seconds, and a quarter of the jar
away. Equal input gives an equal jar.

The build of a source archive runs this, too: it needs nothing but Python, and javac for the classes.
"""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_JVM = _ROOT / "jvm"
#: Where a build leaves the classes: the source archive takes them from here.
CLASSES = _JVM / "classes"
_PACKAGE = "org/rmqfast/spark"
_LIBRARY = "librmqfast_jvm.so"
#: What the libraries link asks for its licences to go along.
_NOTICES = ("LICENSE", "THIRD-PARTY-NOTICES.txt")
_LZMA = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}
#: x86-64 has a filter. aarch64 has none in the xz of Spark 3.5: LZMA2 is told that instructions have four bytes.
_FILTERS = {
    "x86_64": [{"id": lzma.FILTER_X86}, _LZMA],
    "aarch64": [_LZMA | {"lc": 2, "lp": 2}],
}


def compile_classes(spark_jars: Path, directory: Path) -> None:
    """Compiles jvm/ into a directory, which is made anew.

    Args:
        spark_jars: The folder `jars` of a PySpark.
        directory: Where the classes and the resources go.

    Raises:
        CalledProcessError: The compiler says what is wrong.
    """
    with tempfile.TemporaryDirectory() as only_to_compile, tempfile.TemporaryDirectory() as place:
        _javac(Path(only_to_compile), [], _JVM / "src/java8")
        _javac(Path(place), [only_to_compile, f"{spark_jars}/*"], _JVM / "src/main/java")
        shutil.copytree(_JVM / "src/main/resources", place, dirs_exist_ok=True)
        # only now: whoever finds the directory takes it for complete
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(place, directory)


def pack(directory: Path, jar: Path, libraries: Mapping[str, Path], *, small: bool) -> None:
    """Writes the jar.

    Args:
        directory: What `compile_classes` made.
        jar: The file to write.
        libraries: The native library of each platform, as `linux-x86_64`.
        small: Whether the libraries are compressed by xz, for which every Spark has a class. For a jar that is shipped:
            it costs seconds here, and a fraction of one when an executor loads the library.
    """
    if not (directory / _PACKAGE / "RocketMQColumnar.class").is_file():
        sys.exit(f"{directory}: no classes of the columnar source: `release/jar.py classes` compiles them")
    files = below(directory) | {f"META-INF/{name}": _ROOT / name for name in _NOTICES}
    contents = {name: path.read_bytes() for name, path in files.items()}
    for platform, path in libraries.items():
        name, library = f"{_PACKAGE}/{platform}/{_LIBRARY}", path.read_bytes()
        if small:
            contents[f"{name}.xz"] = lzma.compress(library, filters=_FILTERS[platform.rpartition("-")[2]])
        else:
            contents[name] = library
    write_jar(jar, contents)


def pack_sources(jar: Path) -> None:
    """Writes a jar of the Java sources and the resources."""
    write_jar(jar, _contents(below(_JVM / "src/main/java") | below(_JVM / "src/main/resources")))


def pack_documentation(spark_jars: Path, jar: Path) -> None:
    """Writes a jar of what javadoc says of the public classes.

    Args:
        spark_jars: As of `compile_classes`.
        jar: The file to write.

    Raises:
        CalledProcessError: javadoc says what is wrong.
    """
    with tempfile.TemporaryDirectory() as pages:
        flags = ("--release", "8", "-quiet", "-notimestamp", "-Xdoclint:all,-missing", "-Werror")
        sources = map(str, _java(_JVM / "src/main/java"))
        command = (_tool("javadoc"), *flags, "-cp", f"{spark_jars}/*", "-d", pages, *sources)
        subprocess.run(command, check=True)
        write_jar(jar, _contents(below(Path(pages))))


def below(directory: Path) -> dict[str, Path]:
    """The files of a directory, by their names from there."""
    return {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}


def write_jar(jar: Path, contents: Mapping[str, bytes]) -> None:
    """Writes a jar of files, by their names in it."""
    manifest = ("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\r\n\r\n")
    write_zip(jar, [manifest, *sorted(contents.items())])


def write_zip(path: Path, entries: Iterable[tuple[str, bytes]]) -> None:
    """Writes an archive that is the same one whenever it is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in entries:
            archive.writestr(_entry(name), content)


def _contents(files: Mapping[str, Path]) -> dict[str, bytes]:
    """With the licence, which goes along with everything."""
    return {name: path.read_bytes() for name, path in {**files, "META-INF/LICENSE": _ROOT / "LICENSE"}.items()}


def _javac(directory: Path, class_path: list[str], sources: Path) -> None:
    # -options: newer compilers call Java 8 obsolete
    flags = ("--release", "8", "-Xlint:all,-path,-processing,-classfile,-options", "-Werror")
    command = (
        _tool("javac"),
        *flags,
        "-cp",
        os.pathsep.join(class_path),
        "-d",
        str(directory),
        *map(str, _java(sources)),
    )
    subprocess.run(command, check=True)


def _tool(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", name)) if home else name


def _java(sources: Path) -> Iterator[Path]:
    return iter(sorted(sources.rglob("*.java")))


def _entry(name: str) -> zipfile.ZipInfo:
    """Of one time and one mode: a jar that is built again shall be the same one."""
    seconds = max(315532800, int(os.environ.get("SOURCE_DATE_EPOCH", "0")))  # 1980, where the time of archives begins
    entry = zipfile.ZipInfo(name, datetime.fromtimestamp(seconds, UTC).timetuple()[:6])
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    return entry


def main(arguments: list[str]) -> None:
    """Does what the command line says."""
    match arguments:
        case ["classes", spark_jars, directory]:
            compile_classes(Path(spark_jars), Path(directory))
        case ["pack" | "pack-small" as how, directory, jar, *libraries]:
            pairs = (library.partition("=") for library in libraries)
            pack(Path(directory), Path(jar), {platform: Path(path) for platform, _, path in pairs}, small=how != "pack")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
