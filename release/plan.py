"""Says whether a tag may be released, and prints the version.

    python release/plan.py [TAG]

The tag is `v` and the version of Cargo.toml. The newest heading of CHANGELOG.md is that version, with nothing left
under Unreleased. Without a tag nothing is compared: a dry run builds a version that is still in the making.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SECTION = re.compile(r"^## \[(.+?)\]([^\n]*)\n(.*?)(?=^## \[|\Z)", re.MULTILINE | re.DOTALL)


def version() -> str:
    """That of the workspace, which all artefacts have."""
    described: str = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    return described


def problems(tag: str, expected: str, changelog: str) -> Iterator[str]:
    """The reasons why a tag must not be released, a line each.

    Args:
        tag: As it was pushed.
        expected: The version of Cargo.toml.
        changelog: The text of CHANGELOG.md.
    """
    if tag != f"v{expected}":
        yield f"tag: expected v{expected}, of Cargo.toml, got {tag}"
    sections = [match.groups() for match in _SECTION.finditer(changelog)]
    for name, _, text in sections:
        if name == "Unreleased" and text.strip():
            yield "CHANGELOG.md: expected nothing under Unreleased, as it is part of this release"
    newest, date = next(((name, date) for name, date, _ in sections if name != "Unreleased"), ("none", ""))
    if newest != expected:
        yield f"CHANGELOG.md: expected {expected} as the newest heading, got {newest}"
    elif not re.fullmatch(r" - \d{4}-\d{2}-\d{2}", date):
        yield f"CHANGELOG.md: expected the date behind {newest}, as ` - 2026-01-31`, got {date!r}"


def main(arguments: list[str]) -> None:
    """Prints the version, or ends with what is wrong."""
    for tag in arguments:
        found = list(problems(tag, version(), (ROOT / "CHANGELOG.md").read_text()))
        if found:
            sys.exit("\n".join(found))
    sys.stdout.write(f"{version()}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
