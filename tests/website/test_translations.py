"""A page in Chinese has the blocks, headings, links, code and numbers of the English one, and Chinese punctuation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.documents import ROOT

PAGES = [ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.zh.md"))]
TUTORIALS = ROOT / "docs/tutorials"
CHINESE = r"[\u3400-\u9fff]"
_BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"``.+?``|`[^`\n]+`")
_LINK = re.compile(r"(?<=\]\()[^)\s]+(?=\))")
_ADDRESS = re.compile(r'(?<=src=")[^"]+|(?<=srcset=")[^"]+')
_HALF_WIDTH = re.compile(rf"{CHINESE}[,.;:!?(]|[,.;:!?(]{CHINESE}")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def english(page: Path) -> str:
    return page.with_name(page.name.replace(".zh.md", ".md")).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """A page without its blocks, code, links and comments."""
    for pattern in (_BLOCK, _CODE, _LINK, _ADDRESS, re.compile(r"<!--.*?-->")):
        text = pattern.sub("", text)
    return text


def headings(text: str) -> list[str]:
    """The marks of a page's headings; below them, texts of errors stay as they are printed."""
    found = re.findall(r"^(#+) (.+)$", _BLOCK.sub("", text), re.MULTILINE)
    return [f"{mark} {title}" if title.startswith("`") else mark for mark, title in found]


def links(text: str) -> list[str]:
    """The targets of a page's links, without their language."""
    text = _BLOCK.sub("", text)
    return sorted(link.replace(".zh.md", ".md") for link in [*_LINK.findall(text), *_ADDRESS.findall(text)])


def test_the_translated_pages_are_found() -> None:
    pages = {*map(name_of, PAGES)}
    tutorials = {name_of(path).replace(".md", ".zh.md") for path in TUTORIALS.glob("*.md") if ".zh" not in path.name}
    assert len(tutorials) == 9
    assert pages == {"README.zh.md", "docs/index.zh.md", "docs/troubleshooting.zh.md", *tutorials}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_the_blocks_of_the_english_one(page: Path) -> None:
    assert _BLOCK.findall(page.read_text(encoding="utf-8")) == _BLOCK.findall(english(page))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_the_headings_and_links_of_the_english_one(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert headings(text) == headings(english(page))
    assert links(text) == links(english(page))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_names_the_code_and_the_numbers_of_the_english_one(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for pattern, part in ((_CODE, lambda text: _BLOCK.sub("", text)), (re.compile(r"\d+(?:\.\d+)*"), prose)):
        assert sorted(pattern.findall(part(text))) == sorted(pattern.findall(part(english(page))))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_leads_to_chinese_pages_where_there_are_any(page: Path) -> None:
    left = [link for link in links(page.read_text(encoding="utf-8")) if "://" not in link and ".md" in link]
    written = _LINK.findall(page.read_text(encoding="utf-8"))
    translated = [link for link in left if (page.parent / link.replace(".md", ".zh.md")).is_file()]
    assert [link for link in translated if link in written] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_punctuation_beside_chinese_is_chinese(page: Path) -> None:
    text = prose(page.read_text(encoding="utf-8"))
    assert re.search(CHINESE, text)
    assert _HALF_WIDTH.findall(text) == []


@pytest.mark.parametrize("text", ["中文, a", "文(a)", "a,中"])
def test_other_punctuation_is_found(text: str) -> None:
    assert _HALF_WIDTH.search(prose(text))
