"""The layers of the package, as the contracts of import-linter in pyproject.toml state them: do they find faults?

That every contract is kept is for `make lint` to say.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: A file, what is written into it, and which import that is.
FAULTS = {
    "message.py": ("from rmqfast.store import Store", "rmqfast.store"),
    "errors.py": ("import rmqfast.message", "rmqfast.message"),
    "cli/planted.py": ("import pyspark", "pyspark"),
    "store/planted.py": ("import rmqfast.spark", "rmqfast.spark"),
    "client/planted.py": ("import rmqfast.aio", "rmqfast.aio"),
    "testing/planted.py": ("from rmqfast._native import _rmqfast", "rmqfast._native"),
    "client/trace/planted.py": ("import opentelemetry.trace", "opentelemetry"),
    "admin/planted.py": ("import rmqfast.otel", "rmqfast.otel"),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what import-linter reads."""
    shutil.copytree(ROOT / "python", tmp_path / "python", ignore=shutil.ignore_patterns("*.so", "*.jar", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(project: Path) -> str:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    environment = os.environ | {"PYTHONPATH": "python"}
    result = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode != 0, result.stdout
    return result.stdout


def test_each_planted_fault_is_found_and_nothing_else(project: Path) -> None:
    for file, (code, _) in FAULTS.items():
        with (project / "python" / "rmqfast" / file).open("a", encoding="utf-8") as module:
            module.write(f"\n{code}\n")
    printed = lint(project)
    assert "Contracts: 0 kept, 5 broken." in printed
    modules = {f"rmqfast.{file.removesuffix('.py').replace('/', '.')}": target for file, (_, target) in FAULTS.items()}
    assert dict(re.findall(r"^-\s+(\S+) -> (\S+) \(l\.", printed, re.MULTILINE)) == modules


def test_a_package_without_a_layer_is_found(project: Path) -> None:
    (project / "python" / "rmqfast" / "loft.py").touch()
    assert "loft" in lint(project)
