"""Links and pictures of both READMEs lead to files of the tree, from a package index as well as from the repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from .readers import README, README_IN_CHINESE

ROOT = README.parent
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in (README, README_IN_CHINESE)}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGES = f"{PROJECT['urls']['Repository']}/blob/main/"
IMAGES = f"{PROJECT['urls']['Repository']}/main/docs/images/".replace("github.com", "raw.githubusercontent.com")
LINKS = sorted({link for text in TEXTS.values() for link in re.findall(r"\]\(([^)\s]+)\)", text)})
PICTURES = {name: sorted(set(re.findall(r'(?:src|srcset)="([^"]+)"', text))) for name, text in TEXTS.items()}


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


@pytest.mark.parametrize("picture", sorted({picture for pictures in PICTURES.values() for picture in pictures}))
def test_a_picture_is_in_the_tree(picture: str) -> None:
    assert picture.startswith(IMAGES)
    assert (ROOT / "docs" / "images" / picture.removeprefix(IMAGES)).is_file()


@pytest.mark.parametrize("readme", TEXTS)
def test_each_picture_is_for_light_and_dark_pages(readme: str) -> None:
    shown = {picture.removeprefix(IMAGES) for picture in PICTURES[readme]}
    images = ROOT / "docs" / "images"
    assert shown == {path.name for mode in ("light", "dark") for path in images.glob(f"*-{mode}.svg")}


def test_links_to_what_is_not_there_are_found() -> None:
    assert not place(f"{PAGES}docs/nothing.md")[0].is_file()
    assert anchors("# A page\n\n## What `is` there, or not\n") == {"a-page", "what-is-there-or-not"}


@pytest.mark.parametrize("readme", TEXTS)
def test_the_readme_is_short_and_says_what_the_package_needs(readme: str) -> None:
    text = TEXTS[readme]
    assert text.count("\n") <= 120
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in text
    extras = re.search(r"# extras: (.+)", text)
    assert extras is not None
    assert set(extras[1].split(", ")) == set(PROJECT["optional-dependencies"])


def test_the_readmes_lead_to_each_other() -> None:
    assert f"({PAGES}{README_IN_CHINESE.name})" in TEXTS[README.name].partition("\n\n")[0]
    assert f"({PAGES}{README.name})" in TEXTS[README_IN_CHINESE.name].partition("\n\n")[0]
