"""The README's links and pictures lead to files of the tree, from a package index as well as from the repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from .readers import README

ROOT = README.parent
TEXT = README.read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGES = f"{PROJECT['urls']['Repository']}/blob/main/"
IMAGES = f"{PROJECT['urls']['Repository']}/main/docs/images/".replace("github.com", "raw.githubusercontent.com")
LINKS = sorted(set(re.findall(r"\]\(([^)\s]+)\)", TEXT)))
PICTURES = sorted(set(re.findall(r'(?:src|srcset)="([^"]+)"', TEXT)))


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as a code host makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def place(link: str) -> tuple[Path, str]:
    """The file of a link, and its anchor."""
    path, _, anchor = link.removeprefix(PAGES).partition("#")
    return ROOT / path, anchor


@pytest.mark.parametrize("link", LINKS)
def test_a_link_leads_to_a_page_of_the_tree_or_is_an_address_of_the_project(link: str) -> None:
    if link in PROJECT["urls"].values():
        return
    assert link.startswith(PAGES)
    path, anchor = place(link)
    assert path.is_file()
    assert not anchor or anchor in anchors(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_is_in_the_tree(picture: str) -> None:
    assert picture.startswith(IMAGES)
    assert (ROOT / "docs" / "images" / picture.removeprefix(IMAGES)).is_file()


def test_each_picture_is_for_light_and_dark_pages() -> None:
    shown = {picture.removeprefix(IMAGES) for picture in PICTURES}
    images = ROOT / "docs" / "images"
    assert shown == {path.name for mode in ("light", "dark") for path in images.glob(f"*-{mode}.svg")}


def test_links_to_what_is_not_there_are_found() -> None:
    assert not place(f"{PAGES}docs/nothing.md")[0].is_file()
    assert anchors("# A page\n\n## What `is` there, or not\n") == {"a-page", "what-is-there-or-not"}


def test_the_readme_is_short_and_says_what_the_package_needs() -> None:
    assert TEXT.count("\n") <= 120
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in TEXT
    extras = re.search(r"# extras: (.+)", TEXT)
    assert extras is not None
    assert set(extras[1].split(", ")) == set(PROJECT["optional-dependencies"])
