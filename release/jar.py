"""Makes the jar of the Spark data source `rocketmq-columnar`.

    python release/jar.py classes SPARK_JARS DIRECTORY
    python release/jar.py pack DIRECTORY JAR linux-x86_64=LIBRARY ...

The first compiles jvm/ against the jars of a PySpark, the newest that is supported: a few classes need its
interfaces. The others are, byte for byte, those that the oldest one gives (tests/release/test_jar.py). All are for
Java 8, as Spark 3.5 still runs on it. The second packs them with a native library for each platform, and with the
licences of what those link. Equal input gives an equal jar.

The build of a source archive runs this, too: it needs nothing but Python, and javac for the classes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
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


def compile_classes(spark_jars: Path, directory: Path) -> None:
    """Compiles jvm/ into a directory, which is made anew.

    Args:
        spark_jars: The folder `jars` of a PySpark.
        directory: Where the classes and the resources go.

    Raises:
        CalledProcessError: The compiler says what is wrong.
    """
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(_JVM / "src/main/resources", directory)
    with tempfile.TemporaryDirectory() as only_to_compile:
        _javac(Path(only_to_compile), [], _JVM / "src/java8")
        _javac(directory, [only_to_compile, f"{spark_jars}/*"], _JVM / "src/main/java")


def pack(directory: Path, jar: Path, libraries: Mapping[str, Path]) -> None:
    """Writes the jar.

    Args:
        directory: What `compile_classes` made.
        jar: The file to write.
        libraries: The native library of each platform, as `linux-x86_64`.
    """
    files = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    files |= {f"{_PACKAGE}/{platform}/{_LIBRARY}": path for platform, path in libraries.items()}
    files |= {f"META-INF/{name}": _ROOT / name for name in _NOTICES}
    jar.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr(_entry("META-INF/MANIFEST.MF"), "Manifest-Version: 1.0\r\n\r\n")
        for name in sorted(files):
            archive.writestr(_entry(name), files[name].read_bytes())


def _javac(directory: Path, class_path: list[str], sources: Path) -> None:
    home = os.environ.get("JAVA_HOME")
    compiler = str(Path(home, "bin/javac")) if home else "javac"
    # -options: newer compilers call Java 8 obsolete
    flags = ("--release", "8", "-Xlint:all,-path,-processing,-classfile,-options", "-Werror")
    command = (compiler, *flags, "-cp", os.pathsep.join(class_path), "-d", str(directory), *map(str, _java(sources)))
    subprocess.run(command, check=True)


def _java(sources: Path) -> Iterator[Path]:
    return iter(sorted(sources.rglob("*.java")))


def _entry(name: str) -> zipfile.ZipInfo:
    """Of one time and one mode: a jar that is built again shall be the same one."""
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))  # 1980, where the time of archives begins
    entry = zipfile.ZipInfo(name, datetime.fromtimestamp(seconds, UTC).timetuple()[:6])
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    return entry


def main(arguments: list[str]) -> None:
    """Does what the command line says."""
    match arguments:
        case ["classes", spark_jars, directory]:
            compile_classes(Path(spark_jars), Path(directory))
        case ["pack", directory, jar, *libraries]:
            pairs = (library.partition("=") for library in libraries)
            pack(Path(directory), Path(jar), {platform: Path(path) for platform, _, path in pairs})
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
