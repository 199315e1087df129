"""The layers of the package, as the contracts of import-linter in pyproject.toml state them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAULTS = {
    "message.py": "from rmqfast.store import Store",
    "errors.py": "import rmqfast.message",
    "cli/planted.py": "import pyspark",
    "store/planted.py": "import rmqfast.spark",
    "client/planted.py": "import rmqfast.aio",
    "spark/planted.py": "from rmqfast._native import _rmqfast",
    "client/trace/planted.py": "import opentelemetry.trace",
    "admin/planted.py": "import rmqfast.otel",
    "dashboard.py": "",
}


def lint(project: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    environment = os.environ | {"PYTHONPATH": "python"}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_every_contract_is_kept() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("file", FAULTS)
def test_a_planted_fault_is_found(file: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "python", tmp_path / "python", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "python" / "rmqfast" / file).open("a", encoding="utf-8") as module:
        module.write(f"\n{FAULTS[file]}\n")
    assert lint(tmp_path).returncode != 0
