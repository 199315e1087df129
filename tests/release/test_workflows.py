"""The workflows: their order is the host's, their steps are commands of this repository."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = ("ci.yml", "docs.yml", "release.yml")
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
SCRIPT = re.compile(r"(?<![\w/.-])(\.ci/\w+|(?:release|tests)/[\w/]+\.(?:py|sh))\b")


def jobs(workflow: str) -> dict[str, dict[str, Any]]:
    parsed: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / ".github/workflows" / workflow).read_text())["jobs"]
    return parsed


def commands(workflow: str) -> str:
    return "\n".join(step.get("run", "") for job in jobs(workflow).values() for step in job["steps"])


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_targets_and_scripts_of_steps_are_there(workflow: str) -> None:
    text = commands(workflow)
    words = [word for line in re.findall(r"\bmake ([^\n]+)", text) for word in line.split()]
    assert {word for word in words if not word.startswith(".venv")} <= TARGETS
    scripts = set(SCRIPT.findall(text))
    assert scripts
    for script in scripts:
        assert (ROOT / script).is_file(), script
    started = re.findall(r"^(\.ci/\w+)", text, re.MULTILINE)
    assert all(os.access(ROOT / script, os.X_OK) for script in started)


def test_nothing_is_published_before_all_was_tested_and_approved() -> None:
    release = jobs("release.yml")
    published = {name for name in release if name.startswith("publish-")}
    assert published == {"publish-pypi", "publish-maven", "publish-image"}
    for name in published:
        assert release[name]["needs"] == ["plan", "gate"]
    assert release["gate"]["if"] == "needs.plan.outputs.publish == 'true'"
    before = set(release) - published - {"gate", "verify", "build"}
    assert before <= set(release["gate"]["needs"])


def test_only_jobs_that_publish_may_sign_or_write() -> None:
    for workflow in WORKFLOWS:
        for name, job in jobs(workflow).items():
            if not name.startswith("publish-"):
                assert set(job["permissions"].values()) <= {"read"}, name
            assert job["timeout-minutes"] > 0
