"""Writes what the wheel is made of, in CycloneDX: `make sbom`, `make wheel`.

    python -m tests.supply.bill JAR DIRECTORY

`rmqfast-python.cdx.json` has the crates of the extension and the scripts of the dashboard; `rmqfast-columnar.cdx.json`
the files of the jar and the crates of the library in it. Crates, versions and hashes are those of Cargo.lock, for this
platform; what only builds or tests need is left out, as it is not shipped.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from .vendored import VENDORED

_ROOT = Path(__file__).parents[2]


def main() -> None:
    """Writes both."""
    jar, directory = Path(sys.argv[1]), Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    _write(_bill("rmqfast-python", "rmqfast-python", scripts()), directory / "rmqfast-python.cdx.json")
    _write(_bill("rmqfast-columnar", "rmqfast-jvm", files(jar)), directory / "rmqfast-columnar.cdx.json")


def files(jar: Path) -> Iterator[Component]:
    """The files of a jar; no library of others is among them."""
    with zipfile.ZipFile(jar) as archive:
        for name in sorted(name for name in archive.namelist() if not name.endswith("/")):
            digest = HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(archive.read(name)).hexdigest())
            yield Component(name=name, type=ComponentType.FILE, hashes=[digest], bom_ref=f"file:{name}")


def scripts() -> Iterator[Component]:
    """The scripts of others in the wheel."""
    for script in VENDORED:
        yield Component(
            name=f"rmqfast/dashboard/static/{script.path.name}",
            type=ComponentType.FILE,
            version=script.version,
            licenses=[LicenseFactory().make_from_string(script.licence)],
            purl=PackageURL("npm", None, script.package, script.version),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=script.digest)],
            bom_ref=f"file:{script.path.name}",
        )


def crates(root: str, platforms: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Ids of the crates that a crate is linked with, itself included, each with those that it asks for.

    Args:
        root: The name of the crate.
        platforms: As of `metadata`.
    """
    nodes = {node["id"]: node["deps"] for node in metadata(platforms)["resolve"]["nodes"]}
    found: dict[str, list[str]] = {}
    waiting = [package["id"] for package in metadata(platforms)["packages"] if package["name"] == root]
    while waiting:
        crate = waiting.pop()
        if crate not in found:
            found[crate] = [d["pkg"] for d in nodes[crate] if any(kind["kind"] is None for kind in d["dep_kinds"])]
            waiting += found[crate]
    return found


@cache
def metadata(platforms: tuple[str, ...] = ()) -> dict[str, Any]:
    """The output of `cargo metadata` for the workspace.

    Args:
        platforms: Target triples, whose crates are resolved; none: this machine's.
    """
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    for platform in platforms or (_host(),):
        command += ["--filter-platform", platform]
    described: dict[str, Any] = json.loads(subprocess.run(command, cwd=_ROOT, capture_output=True, check=True).stdout)
    return described


def _bill(name: str, root: str, more: Iterable[Component]) -> Bom:
    linked = crates(root)
    components = {crate: _component(crate) for crate in linked}
    whole = next(component for component in components.values() if component.name == root)
    version = whole.version
    bill = Bom(components=[*components.values(), *more])
    # a wheel that is built again shall be the same one
    bill.serial_number, bill.metadata.timestamp = None, None  # type: ignore[assignment]
    bill.metadata.component = Component(name=name, version=version, bom_ref=name)
    bill.register_dependency(bill.metadata.component, [whole])
    for crate, needed in linked.items():
        bill.register_dependency(components[crate], [components[each] for each in needed])
    return bill


def _component(crate: str) -> Component:
    package: dict[str, Any] = next(each for each in metadata()["packages"] if each["id"] == crate)
    name, version, license_ = package["name"], package["version"], package["license"]
    digest = _checksums().get((name, version))
    return Component(
        name=name,
        version=version,
        bom_ref=f"{name}@{version}",
        licenses=[LicenseFactory().make_from_string(license_.replace("/", " OR "))] if license_ else [],
        purl=PackageURL("cargo", None, name, version) if digest else None,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else [],
    )


def _host() -> str:
    rustc = subprocess.run(("rustc", "-vV"), capture_output=True, text=True, check=True).stdout
    return next(line.removeprefix("host: ") for line in rustc.splitlines() if line.startswith("host: "))


@cache
def _checksums() -> dict[tuple[str, str], str]:
    packages = tomllib.loads((_ROOT / "Cargo.lock").read_text())["package"]
    return {(each["name"], each["version"]): each["checksum"] for each in packages if "checksum" in each}


def _write(bill: Bom, path: Path) -> None:
    path.write_text(JsonV1Dot6(bill).output_as_string(indent=1) + "\n")
    sys.stdout.write(f"written: {path}\n")


if __name__ == "__main__":
    main()
