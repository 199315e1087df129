"""Lists known vulnerabilities of the crates and packages of the lock files: `make audit`, and part of `make lint-long`.

    python -m tests.supply.advisories [--required]

cargo-deny asks the RustSec database, pip-audit the JSON of PyPI. Where they cannot be reached, or answer nothing, a
line says `not checked`; with `--required` that is an error, and the tools get minutes in place of seconds to fetch
what they need. The exit code is 1 if anything is known.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_MANIFESTS = ("Cargo.toml", "rust/fuzz/Cargo.toml")
_LOCKS = tuple(f"requirements/{path.name}" for path in sorted((_ROOT / "requirements").glob("*.txt")))
#: Seconds that a tool gets, in `make lint` and where the answer is required.
_HURRY, _PATIENCE = 8, 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """The known vulnerabilities of some lock files.

    Attributes:
        looked_at: The files.
        known: What is known against them, a line each.
        unchecked: Why nothing is known; empty if all was looked up.
    """

    looked_at: str
    known: tuple[str, ...] = ()
    unchecked: str = ""

    def __str__(self) -> str:
        """A line, and one more for all that is known."""
        state = f"not checked: {self.unchecked[:200]}" if self.unchecked else f"checked, {len(self.known)} known"
        return "\n  ".join((f"advisories: {self.looked_at}: {state}", *self.known)) + "\n"


def main() -> int:
    """Asks both tools at once."""
    required = "--required" in sys.argv[1:]
    seconds = _PATIENCE if required else _HURRY
    with ThreadPoolExecutor() as pool:
        packages = pool.submit(package_advisories, seconds)
        verdicts = [*crate_advisories(seconds), *packages.result()]
    sys.stdout.writelines(map(str, verdicts))
    return int(any(v.known or (required and v.unchecked) for v in verdicts))


def crate_advisories(seconds: int) -> list[Verdict]:
    """Fetches the database and asks it; where it cannot be fetched, the one of before, within the age of deny.toml."""
    rustc = subprocess.run(("rustc", "-vV"), capture_output=True, text=True, check=True).stdout
    host = next(line.removeprefix("host: ") for line in rustc.splitlines() if line.startswith("host: "))
    _, why_not = _run(("cargo-deny", "--locked", "--target", host, "fetch", "db"), seconds)
    verdicts = []
    for manifest in _MANIFESTS:
        # no build downloads the crates of benchmarks, which the lock file has, too
        fetch = ("cargo", "fetch", "--quiet", "--locked", "--target", host, "--manifest-path", manifest)
        subprocess.run(("timeout", str(seconds), *fetch), cwd=_ROOT, capture_output=True, check=False)
        command = ("cargo-deny", "--offline", "--locked", "--target", host, "--manifest-path", manifest, "-f", "json")
        _, told = _run((*command, "check", "advisories"), seconds)
        verdicts.append(_read_cargo_deny(manifest, told, why_not))
    return verdicts


def _read_cargo_deny(manifest: str, told: str, why_not: str) -> Verdict:
    """The verdict of cargo-deny's JSON; without a summary it did not check."""
    records: list[dict[str, Any]] = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    if not any(record["type"] == "summary" for record in records):
        return Verdict(manifest, unchecked=_last_line(why_not) or _last_line(told))
    found = [record["fields"] for record in records if record["type"] == "diagnostic"]
    return Verdict(manifest, tuple(_told(fields) for fields in found if fields["severity"] == "error"))


def _told(fields: dict[str, Any]) -> str:
    crates = ", ".join(f"{root['Krate']['name']} {root['Krate']['version']}" for root in fields.get("graphs", ()))
    name = (fields.get("advisory") or {}).get("id", fields.get("code", ""))
    return f"{name}: {crates}: {fields['message']}"


def package_advisories(seconds: int) -> list[Verdict]:
    """Asks for each package of the lock files, one after the other, until nobody can tell."""
    verdicts: list[Verdict] = []
    for lock in _LOCKS:
        # --strict, as a package that nobody can tell of would count as sound
        command = ("pip-audit", "--strict", "--no-deps", "--disable-pip", "--progress-spinner", "off", "--timeout", "5")
        out, err = _run((*command, "--format", "json", "--requirement", lock), seconds)
        if not out.startswith("{"):
            rest = ", ".join(_LOCKS[len(verdicts) :])
            return [*verdicts, Verdict(rest, unchecked=_last_line(err) or "pip-audit told nothing")]
        verdicts.append(_read_pip_audit(lock, out))
    return verdicts


def _read_pip_audit(lock: str, out: str) -> Verdict:
    known = tuple(
        f"{weakness['id']}: {package['name']} {package['version']}: mended in {weakness['fix_versions']}"
        for package in json.loads(out)["dependencies"]
        for weakness in package["vulns"]
    )
    return Verdict(lock, known)


def _run(command: Sequence[str], seconds: int) -> tuple[str, str]:
    """The output of a tool on both streams; `timeout` also ends its child processes."""
    tool = Path(sys.executable).with_name(command[0])
    line = ("timeout", str(seconds), str(tool), *command[1:])
    done = subprocess.run(line, cwd=_ROOT, capture_output=True, text=True, check=False)
    return done.stdout, f"no answer within {seconds} seconds" if done.returncode == 124 else done.stderr


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


if __name__ == "__main__":
    sys.exit(main())
