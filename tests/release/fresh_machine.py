"""A stranger on a fresh machine: pip installs the wheel there, and what the README says is typed as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .roots import Root

_ROOT = Path(__file__).parents[2]
#: Of `venv` and `pip`, and of the scripts that start Spark.
PACKAGES = ("openjdk-17-jre-headless", "bash", "dash", "coreutils", "grep", "sed", "procps", "libc-bin")
#: What the test of the README is run by, and what installs.
_BESIDES = ("pytest", "pip")
#: pip is run out of its own wheel: these Pythons have none.
_SCRIPT = """
python{version} -m venv --without-pip /root/reader
pip=$(echo /wheels/pip-*.whl)
/root/reader/bin/python "$pip/pip" install --quiet --no-index --find-links /wheels {installed}
cd /root
PATH=/root/reader/bin:$PATH PYTHONPATH=/asked python -m tests.release.typed_readme /root/typed
"""


def read(root: Root, home: Path, python: str, wheels: Path) -> str:
    """The result: `passed: ` and the commands, or `failed: ` and the reason.

    Args:
        root: The machine, with a Java.
        home: The folder of all roots.
        python: The version, as `3.11`.
        wheels: All that pip would get from an index, which nobody can reach from within the root: see `fetch`.
    """
    installed = f"'{_installed_by_readme()}' {' '.join(_BESIDES)}"
    result = root.run(
        home,
        ("sh", "-ec", _SCRIPT.format(version=python, installed=installed)),
        binds={wheels: "/wheels", _ROOT: "/asked"},
        environment={"JAVA_HOME": "/usr/lib/jvm/java-17-openjdk-amd64"},
        timeout=1800,
    )
    if result.returncode != 0:
        return f"failed: {' '.join(result.stderr.split()[-60:])}"
    return f"passed: {'; '.join(line for line in result.stdout.splitlines() if line)}"


def fetch(wheel: Path, options: Sequence[str], archives: Path, directory: Path) -> str:
    """Downloads the wheels for a machine; what went wrong.

    Args:
        wheel: The package's.
        options: Of pip, that say which machine.
        archives: A folder with wheels of what the index has as an archive alone.
        directory: Where they go.
    """
    wanted = (f"{_installed_by_readme()} @ {wheel.as_uri()}", *_BESIDES)
    where = ("--find-links", str(archives), "--dest", str(directory))
    command = (sys.executable, "-m", "pip", "download", "--quiet", *options, *where, *wanted)
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return " ".join(result.stderr.split()) if result.returncode != 0 else ""


def _installed_by_readme() -> str:
    """The last requirement that the README installs with pip: `rmqfast[spark,cli]`."""
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    found: list[str] = re.findall(r"^pip install '([^']+)'", readme, re.MULTILINE)
    return found[-1]
