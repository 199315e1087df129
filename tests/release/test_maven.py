"""The jar as Maven Central takes it; Maven itself resolves it out of the repository that was made."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
VERSION: str = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
STEM = f"rmqfast-columnar-{VERSION}"
#: What Central asks for beside the pom.
JARS = [f"{STEM}{kind}.jar" for kind in ("", "-javadoc", "-sources")]
_PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId>
  <artifactId>job</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <repositories>
    <repository>
      <id>made</id>
      <url>URL</url>
      <releases><checksumPolicy>fail</checksumPolicy></releases>
    </repository>
  </repositories>
  <dependencies>
    <dependency><groupId>org.rmqfast</groupId><artifactId>rmqfast-columnar</artifactId><version>VERSION</version></dependency>
  </dependencies>
</project>
"""


def lay_out(directory: Path) -> Path:
    """Makes the repository of a jar that has classes and no library; where its files are."""
    spark_jars = Path(sys.prefix).glob("lib/python3.*/site-packages/pyspark/jars")
    (spark,) = spark_jars
    classes, jar = directory / "classes", directory / "rmqfast-columnar.jar"
    script = ROOT / "release/jar.py"
    for command in (
        (script, "classes", spark, classes),
        (script, "pack", classes, jar),
        (ROOT / "release/maven.py", "lay-out", jar, spark, directory / "repository"),
    ):
        subprocess.run([sys.executable, *command], check=True)
    return directory / "repository/org/rmqfast/rmqfast-columnar" / VERSION


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("maven"))


def test_each_file_has_its_checksums(place: Path) -> None:
    files = sorted(path for path in place.iterdir() if path.suffix in {".jar", ".pom"})
    assert [path.name for path in files] == sorted([*JARS, f"{STEM}.pom"])
    for path in files:
        for name in ("md5", "sha1", "sha256"):
            expected = hashlib.new(name, path.read_bytes()).hexdigest()
            assert path.with_name(f"{path.name}.{name}").read_text() == expected, path.name
    assert len([*place.iterdir()]) == 4 * len(files)


def test_the_pom_has_what_central_asks_for(place: Path) -> None:
    pom = ET.parse(place / f"{STEM}.pom").getroot()  # noqa: S314 - ours
    space = "{http://maven.apache.org/POM/4.0.0}"
    for path in ("name", "description", "url", "licenses/license/name", "developers/developer/name", "scm/url"):
        found = pom.find(space + path.replace("/", f"/{space}"))
        assert found is not None, path
        assert found.text, path
    assert pom.find(f"{space}dependencies") is None


def test_sources_and_documentation_are_of_the_same_classes(place: Path) -> None:
    for name, expected in (
        ("", {"org/rmqfast/spark/RocketMQColumnar.class", "META-INF/THIRD-PARTY-NOTICES.txt"}),
        ("-sources", {"org/rmqfast/spark/RocketMQColumnar.java"}),
        ("-javadoc", {"org/rmqfast/spark/RocketMQColumnar.html", "index.html"}),
    ):
        with zipfile.ZipFile(place / f"{STEM}{name}.jar") as archive:
            assert expected | {"META-INF/MANIFEST.MF", "META-INF/LICENSE"} <= set(archive.namelist())


def test_the_bundle_is_the_repository_in_an_archive(place: Path) -> None:
    repository = place.parents[3]
    with zipfile.ZipFile(repository / f"{STEM}-bundle.zip") as archive:
        names = archive.namelist()
        assert sorted(names) == sorted(str(path.relative_to(repository)) for path in place.iterdir())
        assert all(archive.read(name) == (repository / name).read_bytes() for name in names)


def test_maven_resolves_it_with_its_sources(place: Path, tmp_path: Path) -> None:
    project = _PROJECT.replace("URL", place.parents[3].as_uri()).replace("VERSION", VERSION)
    (tmp_path / "pom.xml").write_text(project)
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    for more in ((), ("-Dclassifier=sources",), ("-Dclassifier=javadoc",)):
        # a repository of its own: nothing is there from a run before
        local = f"-Dmaven.repo.local={tmp_path / 'local'}"
        command = ["mvn", "--quiet", "--batch-mode", local, goal, f"-DoutputDirectory={tmp_path / 'copied'}", *more]
        subprocess.run(command, cwd=tmp_path, check=True)
    copied = {path.name: path.read_bytes() for path in (tmp_path / "copied").iterdir()}
    assert copied == {name: (place / name).read_bytes() for name in JARS}


@contextmanager
def gpg_home(directory: Path) -> Iterator[str]:
    """A key ring with one key; its agent ends with it."""
    directory.mkdir(mode=0o700)
    home = {"GNUPGHOME": str(directory)}
    make = ("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "release@example.org", "ed25519", "sign")
    subprocess.run(make, env=os.environ | home, check=True)
    try:
        yield str(directory)
    finally:
        subprocess.run(("gpgconf", "--kill", "all"), env=os.environ | home, check=True)


def test_with_a_key_each_file_has_a_signature(place: Path, tmp_path: Path) -> None:
    with gpg_home(tmp_path / "gpg") as home:
        repository = shutil.copytree(place.parents[3], tmp_path / "repository")
        environment = os.environ | {"GNUPGHOME": home}
        signing: list[str | Path] = [ROOT / "release/maven.py", "sign", repository, "release@example.org"]
        subprocess.run([sys.executable, *signing], env=environment, check=True)
        files = [path for path in repository.rglob("*") if path.suffix in {".jar", ".pom"}]
        assert len(files) == 4
        for path in files:
            subprocess.run(["gpg", "--verify", f"{path}.asc", str(path)], env=environment, check=True)
        with zipfile.ZipFile(repository / f"{STEM}-bundle.zip") as archive:
            assert {f"{path.relative_to(repository)}.asc" for path in files} <= set(archive.namelist())
            assert f"{STEM}-bundle.zip" not in archive.namelist()
