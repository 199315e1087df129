"""Lays the jar out as a Maven repository has it, ready for Maven Central.

    python release/maven.py lay-out JAR SPARK_JARS DIRECTORY
    python release/maven.py sign DIRECTORY KEY

By the first, DIRECTORY becomes a repository with the jar, its pom, its sources and its documentation, each with
checksums, and holds `rmqfast-columnar-VERSION-bundle.zip`, which Central's portal takes. The second gives each file the
signature that Central asks for, with a key of gpg, and makes the bundle anew: who has the key need not build.

The pom names no dependencies: the jar runs in a Spark, which brings its own.

Source: Maven's repository layout; Central's requirements for publishing.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

import jar
import plan

_GROUP, _ARTIFACT = "org.rmqfast", "rmqfast-columnar"
_CHECKSUMS = ("md5", "sha1", "sha256")
_POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 http://maven.apache.org/xsd/maven-4.0.0.xsd">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <packaging>jar</packaging>
  <name>{artifact}</name>
  <description>Apache RocketMQ topics and message stores as a columnar data source of Apache Spark</description>
  <url>{home}</url>
  <licenses>
    <license>
      <name>Apache-2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
      <distribution>repo</distribution>
    </license>
  </licenses>
  <developers>
    <developer>
      <name>{developer}</name>
      <url>{repository}</url>
    </developer>
  </developers>
  <scm>
    <connection>scm:git:{repository}.git</connection>
    <url>{repository}</url>
  </scm>
</project>
"""


def lay_out(packed: Path, spark_jars: Path, directory: Path) -> Path:
    """Makes the repository anew, and the bundle of it.

    Args:
        packed: The jar, as `release/jar.py` packs it.
        spark_jars: The folder `jars` of a PySpark, which javadoc needs.
        directory: Where the repository goes.

    Returns:
        The bundle.

    Raises:
        CalledProcessError: javadoc or gpg says what is wrong.
    """
    version = plan.version()
    shutil.rmtree(directory, ignore_errors=True)
    place = directory / _GROUP.replace(".", "/") / _ARTIFACT / version
    place.mkdir(parents=True)
    stem = f"{_ARTIFACT}-{version}"
    shutil.copyfile(packed, place / f"{stem}.jar")
    (place / f"{stem}.pom").write_text(_pom(version))
    jar.pack_sources(place / f"{stem}-sources.jar")
    jar.pack_documentation(spark_jars, place / f"{stem}-javadoc.jar")
    for path in sorted(place.iterdir()):
        _write_checksums(path)
    return _bundle(directory)


def sign(directory: Path, key: str) -> Path:
    """Signs what was laid out, and makes the bundle anew.

    Args:
        directory: Of the repository.
        key: As `gpg --local-user` takes it.

    Returns:
        The bundle.

    Raises:
        CalledProcessError: gpg says what is wrong.
    """
    for path in sorted(directory.rglob("*")):
        if path.suffix in {".jar", ".pom"}:
            command = ("gpg", "--batch", "--yes", "--armor", "--local-user", key, "--detach-sign", str(path))
            subprocess.run(command, check=True)
    return _bundle(directory)


def _bundle(directory: Path) -> Path:
    bundle = directory / f"{_ARTIFACT}-{plan.version()}-bundle.zip"
    bundle.unlink(missing_ok=True)
    jar.write_zip(bundle, [(name, path.read_bytes()) for name, path in sorted(jar.below(directory).items())])
    return bundle


def _pom(version: str) -> str:
    project = tomllib.loads((plan.ROOT / "pyproject.toml").read_text())["project"]
    urls = project["urls"]
    values = {
        "group": _GROUP,
        "artifact": _ARTIFACT,
        "version": version,
        "home": urls["Homepage"],
        "repository": urls["Repository"],
        "developer": project["authors"][0]["name"],
    }
    return _POM.format(**{name: escape(value) for name, value in values.items()})


def _write_checksums(path: Path) -> None:
    content = path.read_bytes()
    for name in _CHECKSUMS:
        path.with_name(f"{path.name}.{name}").write_text(hashlib.new(name, content).hexdigest())


def main(arguments: list[str]) -> None:
    """Does what the command line says."""
    match arguments:
        case ["lay-out", packed, spark_jars, directory]:
            bundle = lay_out(Path(packed), Path(spark_jars), Path(directory))
        case ["sign", directory, key]:
            bundle = sign(Path(directory), key)
        case _:
            sys.exit(__doc__)
    sys.stdout.write(f"written: {bundle}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
