"""A release has one version: that of its tag, of Cargo.toml and of the changelog."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OLDER = "## [0.1.0] - 2026-01-31\n\n### Added\n\n- Scans.\n"


def plan(root: Path, changelog: str, *tag: str) -> subprocess.CompletedProcess[str]:
    """Runs the script of a project with that changelog, whose version is 0.2.0."""
    (root / "release").mkdir()
    (root / "release/plan.py").write_text((ROOT / "release/plan.py").read_text())
    (root / "Cargo.toml").write_text('[workspace.package]\nversion = "0.2.0"\n')
    (root / "CHANGELOG.md").write_text(changelog)
    command: list[str | Path] = [sys.executable, root / "release/plan.py", *tag]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_tag_of_the_version_with_a_heading_is_released(tmp_path: Path) -> None:
    done = plan(
        tmp_path, f"# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-28\n\n- Streams.\n\n{OLDER}", "v0.2.0"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.2.0\n", "")


@pytest.mark.parametrize(
    ("changelog", "tag", "said"),
    [
        ("## [0.2.0] - 2026-02-28\n", "v0.2.1", "tag: expected v0.2.0, of Cargo.toml, got v0.2.1"),
        ("## [0.2.0] - 2026-02-28\n", "0.2.0", "tag: expected v0.2.0, of Cargo.toml, got 0.2.0"),
        (OLDER, "v0.2.0", "CHANGELOG.md: expected 0.2.0 as the newest heading, got 0.1.0"),
        ("", "v0.2.0", "CHANGELOG.md: expected 0.2.0 as the newest heading, got none"),
        ("## [0.2.0]\n", "v0.2.0", "expected the date behind 0.2.0"),
        (f"## [Unreleased]\n\n- Streams.\n\n## [0.2.0] - 2026-02-28\n\n{OLDER}", "v0.2.0", "nothing under Unreleased"),
    ],
)
def test_a_tag_that_differs_and_a_changelog_without_it_are_refused(
    changelog: str, tag: str, said: str, tmp_path: Path
) -> None:
    done = plan(tmp_path, changelog, tag)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_dry_run_has_no_tag_and_prints_the_version_alone() -> None:
    done = subprocess.run([sys.executable, ROOT / "release/plan.py"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
