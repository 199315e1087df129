"""The files that the project's host reads: their addresses are the project's, and what they name is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"
HOSTS = (*FORMS.glob("*.yml"), ROOT / ".github/PULL_REQUEST_TEMPLATE.md", ROOT / "CODE_OF_CONDUCT.md")
FOREIGN = ("https://www.contributor-covenant.org/", "https://creativecommons.org/")


def test_addresses_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    found = [address for file in HOSTS for address in re.findall(r"https?://[^\s)>\"]+", file.read_text())]
    assert found
    for address in found:
        assert address.startswith((project["Documentation"], project["Repository"], *FOREIGN)), address


def test_each_updated_directory_is_there_and_has_a_lock_file() -> None:
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]
    locks = {"cargo": "Cargo.lock", "pip": "dev.txt", "github-actions": "."}
    for update in updates:
        assert update["schedule"]["interval"] == "weekly"
        assert update["groups"]
        for directory in update.get("directories") or [update["directory"]]:
            assert (ROOT / directory.lstrip("/") / locks[update["package-ecosystem"]]).exists()
    covered = {folder for update in updates for folder in update.get("directories", [])}
    crates = {f"/{path.parent.relative_to(ROOT)}".removesuffix(".") for path in ROOT.glob("rust/*/Cargo.lock")} | {"/"}
    assert covered == crates


def test_files_that_forms_and_templates_name_are_there() -> None:
    for file in HOSTS:
        for name in re.findall(r"`([A-Za-z_./0-9-]+\.md)`", file.read_text()):
            assert (ROOT / name).is_file(), f"{file}: {name}"


def test_a_form_asks_for_what_its_reader_needs() -> None:
    bug = yaml.safe_load((FORMS / "bug.yml").read_text())["body"]
    asked = {field["id"]: field.get("validations", {}).get("required", False) for field in bug if "id" in field}
    assert asked == {"version": True, "command": True, "seen": True, "store": False, "smallest": False}
