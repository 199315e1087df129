"""What package registries say of a package today, asked by their ordinary clients: uv and pip, mvn, npm, go.

A registry that refuses, and a mirror that leaves something out, tell nothing: what is not told is empty.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from packaging.utils import parse_wheel_filename

_PATIENCE = 300
_BIN = Path(sys.executable).parent
#: What go calls a commit that has no version.
_GO_COMMIT = re.compile(r"-(?:0\.)?\d{14}-[0-9a-f]{12}$")


@dataclass(frozen=True)
class Release:
    """The newest release of a package.

    Attributes:
        version: Its version.
        date: The day of it, ISO 8601.
        files: What can be installed, as "wheel: any platform".
        runtime: The versions of the language that it asks for.
        needs: The packages that it depends on.
    """

    version: str = ""
    date: str = ""
    files: tuple[str, ...] = ()
    runtime: str = ""
    needs: tuple[str, ...] | None = None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Release:
        """What `as_json` gave."""
        needs = data["needs"]
        return cls(**{**data, "files": tuple(data["files"]), "needs": None if needs is None else tuple(needs)})

    def as_json(self) -> dict[str, Any]:
        """Itself as JSON's values."""
        return asdict(self)


def look_up(registry: str, package: str) -> Release:
    """Asks a registry for the newest release of a package.

    Raises:
        KeyError: There is no such registry.
    """
    ask = _REGISTRIES[registry]
    with tempfile.TemporaryDirectory() as directory:
        return ask(package, Path(directory))


def _of_pypi(package: str, directory: Path) -> Release:
    """The lock file of uv has files and their times, pip's report has what a wheel asks for."""
    wanted = directory / "wanted.in"
    wanted.write_text(f"{package}\n", encoding="utf-8")
    uv = (str(_BIN / "uv"), "pip", "compile", "--universal", "--python-version", "3.11", "--no-deps", "--quiet")
    lock = _output(*uv, "--no-header", "--format", "pylock.toml", str(wanted), cwd=directory)
    if lock is None:
        return Release()
    (found,) = tomllib.loads(lock)["packages"]
    files = [*found.get("wheels", ()), *([found["sdist"]] if "sdist" in found else ())]
    times: list[datetime] = [one["upload-time"] for one in files if "upload-time" in one]
    platforms = sorted({name for one in found.get("wheels", ()) for name in _platforms(one["url"])})
    runtime, needs = _asked_by_wheel(f"{package}=={found['version']}", directory)
    return Release(
        version=found["version"],
        date=min(times).date().isoformat() if times else "",
        files=tuple(f"wheel: {name}" for name in platforms) or ("source archive only",),
        runtime=runtime,
        needs=needs,
    )


def _platforms(url: str) -> set[str]:
    """The platforms of a wheel, by its name."""
    tags = parse_wheel_filename(url.rpartition("/")[2])[3]
    return {"any platform" if tag.platform == "any" else tag.platform for tag in tags}


def _asked_by_wheel(pinned: str, directory: Path) -> tuple[str, tuple[str, ...] | None]:
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps")
    report = _output(*pip, "--only-binary", ":all:", "--report", "-", pinned, cwd=directory)
    if report is None:
        return "", None
    metadata = json.loads(report)["install"][0]["metadata"]
    needs = [need for need in metadata.get("requires_dist", ()) if "extra ==" not in need]
    runtime = metadata.get("requires_python", "")
    return f"Python {runtime}" if runtime else "", tuple(sorted(re.split(r"[\s<>=!~;\[(]", need)[0] for need in needs))


def _of_maven(package: str, directory: Path) -> Release:
    """The jar itself: the version of its `pom.properties`, the day of its newest file."""
    copy = ("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={package}:RELEASE", f"-DoutputDirectory={directory}")
    if _output(*copy, cwd=directory) is None:
        return Release()
    group, artifact = package.split(":")
    (path,) = directory.glob("*.jar")
    with zipfile.ZipFile(path) as jar:
        properties = jar.read(f"META-INF/maven/{group}/{artifact}/pom.properties").decode()
        built = datetime(*max(entry.date_time for entry in jar.infolist()))  # noqa: DTZ001 - only its day is used
    version = re.search(r"^version=(.+)$", properties, re.MULTILINE)
    assert version, f"{path}: no version in pom.properties"
    return Release(version=version[1].strip(), date=built.date().isoformat(), files=("jar",))


def _of_npm(package: str, directory: Path) -> Release:
    answer = _output("npm", "view", package, "--json", cwd=directory)
    if answer is None:
        return Release()
    found = json.loads(answer)
    times = found.get("time", {})
    node = found.get("engines", {}).get("node", "")
    return Release(
        version=found["version"],
        # a mirror that leaves out when the package was created has times of its own
        date=times.get(found["version"], "")[:10] if "created" in times else "",
        files=("source, compiled as it is installed" if "install" in found.get("scripts", {}) else "JavaScript",),
        runtime=f"Node {node}" if node else "",
        needs=tuple(sorted(found.get("dependencies", {}))),
    )


def _of_go(package: str, directory: Path) -> Release:
    answer = _output("go", "list", "-m", "-json", f"{package}@latest", cwd=directory)
    if answer is None:
        return Release()
    found = json.loads(answer)
    if _GO_COMMIT.search(found["Version"]):
        return Release()
    runtime = f"Go {found['GoVersion']}" if "GoVersion" in found else ""
    return Release(version=found["Version"], date=found["Time"][:10], files=("source",), runtime=runtime)


def _output(*command: str, cwd: Path) -> str | None:
    """What a command prints; None where it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    if done.returncode:
        sys.stderr.write(f"{' '.join(command)}: {done.stderr.strip()[-300:]}\n")
    return None if done.returncode else done.stdout


_REGISTRIES: Mapping[str, Callable[[str, Path], Release]] = {
    "pypi": _of_pypi,
    "maven": _of_maven,
    "npm": _of_npm,
    "go": _of_go,
}
