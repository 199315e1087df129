"""The documentation site is built without a warning, loads nothing from elsewhere, and has all public names."""

from __future__ import annotations

import json
import pkgutil
import re
import subprocess
import sys
import zlib
from importlib import import_module
from pathlib import Path

import pytest
from website.__main__ import DOCS, FILES
from website.checks import problems
from website.links import with_repository_links
from website.names_page import SHOWN, public_names

import rmqfast
import rmqfast.client
from rmqfast._native import SparkOptions
from rmqfast.store import MessageStore
from tests.examples.documents import ROOT

REFERENCE = ROOT / "docs/reference"
#: They have no page: the extension, whose names others give; the command line, which is no library.
WITHOUT_PAGE = {"rmqfast._native", "rmqfast.cli", "rmqfast.__main__"}
#: An entry of the navigation at the left.
_ENTRY = re.compile(r'<a href="?[^">#]*"? class="?md-nav__link[^>]*>\s*<span class="?md-ellipsis"?>([^<]+)')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(built)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return built


def test_the_site_has_each_public_name(site: Path) -> None:
    shown = [thing for page in REFERENCE.glob("*.md") for thing in shown_by(page, site)]
    modules = [module for page in REFERENCE.glob("*.md") for module in SHOWN.findall(page.read_text(encoding="utf-8"))]
    public = [(module, name) for module in modules for name in public_names(module)]
    assert len(public) > 200
    assert [
        each for each in public if not any(getattr(import_module(each[0]), each[1]) is thing for thing in shown)
    ] == []


def test_each_page_is_there_in_both_languages_and_leads_to_the_other(site: Path) -> None:
    pages = [path.relative_to(site) for path in site.rglob("index.html") if site / "zh" not in path.parents]
    assert len(pages) > 80
    for page in pages:
        english, chinese = ((folder / page).read_text(encoding="utf-8") for folder in (site, site / "zh"))
        assert re.search(r"<html lang=.?en\b", english), page
        assert re.search(r"<html lang=.?zh\b", chinese), page
        up = "../" * len(page.parent.parts)
        below = f"{page.parent.as_posix()}/".removeprefix("./")
        assert f'href="{up}zh/{below}" hreflang="zh"' in english, page
        assert f'href="{up}../{below}" hreflang="en"' in chinese, page


def test_what_has_no_translation_is_english_on_the_chinese_site(site: Path) -> None:
    translated, not_translated = (
        (site / "zh" / page / "index.html").read_text(encoding="utf-8") for page in ("troubleshooting", "glossary")
    )
    assert "故障排查</h1>" in re.sub(r"<a class.+?</a>", "", translated)
    assert "One name for one thing" in not_translated
    assert "操作指南" in not_translated  # the navigation


def test_the_navigation_of_the_chinese_site_is_chinese(site: Path) -> None:
    pages = [path.read_text(encoding="utf-8") for path in (site / "zh").rglob("index.html")]
    entries = {name.strip() for page in pages for name in _ENTRY.findall(page)}
    assert "Spark 选项" in entries
    assert {name for name in entries if not re.search("[\u3400-\u9fff]|^rmqfast", name)} == {"Spark"}


def test_what_is_there_once_is_english(site: Path) -> None:
    assert re.search(r"<html lang=.?en\b", (site / "404.html").read_text(encoding="utf-8"))
    inventory = zlib.decompress((site / "objects.inv").read_bytes().partition(b"zlib.\n")[2]).decode()
    assert "reference/producer/" in inventory
    assert "zh/" not in inventory


def test_the_search_finds_pages_in_chinese(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    assert index["config"]["lang"] == ["en", "zh"]
    # the search looks words up, so the index marks where they begin and end
    places = [entry["location"] for entry in index["docs"] if "\u200b死信\u200b" in entry["text"]]
    assert {place.partition("#")[0] for place in places} >= {"zh/troubleshooting/", "zh/tutorials/service-with-tests/"}
    # what is shown in English on both sites is found once
    assert [entry["location"] for entry in index["docs"] if entry["location"].startswith("zh/reference/")] == []


def test_no_script_goes_through_the_parts_of_a_reference_page(site: Path) -> None:
    options = (site / "reference/options/index.html").read_text(encoding="utf-8")
    assert options.count("<table>") == options.count("md-typeset__scrollwrap") > 0
    for page in (site / "reference").rglob("index.html"):
        assert not re.search(r"data-md-component=.?(?:toc|content)\b", page.read_text(encoding="utf-8")), page


def test_no_script_holds_up_what_is_shown_first(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert [path for path, text in pages.items() if re.search(r"<script [^>]*src=", text)] == []
    loaded = [(path, script) for path, text in pages.items() for script in re.findall(r'onceShown\("(.*?)"\)', text)]
    assert len(loaded) == len(pages) > 0
    # the address on the page for what is not there begins at the root of the site's host
    assert [each for each in loaded if each[0].stem != "404" and not (each[0].parent / each[1]).is_file()] == []


def test_a_picture_has_a_dark_twin(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    assert home.count("#only-light") == home.count("#only-dark") > 0


def test_each_method_of_a_store_is_on_one_page(site: Path) -> None:
    pages = [site / "reference" / page / "index.html" for page in ("message-store", "store-look-ups")]
    anchor = re.compile(r'id="?rmqfast\.store\.MessageStore\.(\w+)[" >]')
    shown = [name for page in pages for name in anchor.findall(page.read_text(encoding="utf-8"))]
    assert sorted(shown) == [name for name in dir(MessageStore) if not name.startswith("_")]


def shown_by(page: Path, site: Path) -> list[object]:
    html = (site / "reference" / ("" if page.stem == "index" else page.stem) / "index.html").read_text(encoding="utf-8")
    anchors = set(re.findall(r'id="?([\w.]+)', html))
    modules = [import_module(module) for module in SHOWN.findall(page.read_text(encoding="utf-8"))]
    names = [(module, name) for module in modules for name in public_names(module.__name__)]
    return [getattr(module, name) for module, name in names if f"{module.__name__}.{name}" in anchors]


def test_each_public_module_has_a_page() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.md"))
    shown = [name for module in SHOWN.findall(text) for name in (module, module.rpartition(".")[0])]
    found = [*pkgutil.iter_modules(rmqfast.__path__, "rmqfast.")]
    found += pkgutil.iter_modules(rmqfast.client.__path__, "rmqfast.client.")
    assert [name for _, name, _ in found if name not in {*shown, *WITHOUT_PAGE, *NOTHING_PUBLIC}] == []


#: They have no names of their own for users: parts of others, the version, and what systems do differently.
NOTHING_PUBLIC = {
    *("rmqfast.arguments", "rmqfast.cells", "rmqfast.client.pulling", "rmqfast.extras", "rmqfast.html", "rmqfast.logs"),
    *("rmqfast.paths", "rmqfast.pickling", "rmqfast.system", "rmqfast.threads", "rmqfast.version"),
}


@pytest.mark.parametrize("file", FILES)
def test_what_is_made_of_the_code_is_as_the_code(file: str) -> None:
    assert (DOCS / file).read_text(encoding="utf-8") == FILES[file](), "python -m website"


def test_the_options_of_stores_in_the_document_are_those_of_the_code() -> None:
    text = (ROOT / "docs/spark.md").read_text(encoding="utf-8").split("## Arguments and options")[1].split("\n## ")[0]
    cells = [re.split(r"(?<!\\)\|", line) for line in text.splitlines() if line.startswith("| ")]
    found = {name for row in cells[2:] for name in re.findall(r"`(\w+)(?:=\w+)?`", row[2])}
    assert found | {"path"} == set(SparkOptions.names("store batch"))  # `load(path)`


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<link rel="stylesheet" href="https://fonts.example/a.css">', "index.html loads https://fonts.example/a.css"),
        ('<link rel=preconnect href="//cdn.example">', "index.html loads //cdn.example"),
        ('<img srcset="a.png 1x, https://img.example/a.png 2x">', "index.html loads https://img.example/a.png"),
        ('<p style="background: url(//img.example/a)">', "index.html loads //img.example/a"),
        ('<div class="mermaid">', "index.html has a diagram"),
        ('<script>onceShown("https://a.example/b.js")</script>', "index.html loads https://a.example/b.js"),
        ('<a href="#nowhere">', "index.html links to #nowhere"),
        ('<a href="other/">', "index.html links to other/"),
    ],
)
def test_a_page_that_loads_from_elsewhere_or_leads_nowhere_is_named(tmp_path: Path, html: str, problem: str) -> None:
    (tmp_path / "a.png").touch()
    (tmp_path / "index.html").write_text(html, encoding="utf-8")
    assert problem in list(problems(tmp_path))


def test_styles_and_scripts_that_load_from_elsewhere_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@import 'https://a.example/b.css'; p { background: url(c.png) }")
    (tmp_path / "a.js").write_text("fetch('https://a.example/d'); fetch('e')")
    assert list(problems(tmp_path)) == ["a.css loads https://a.example/b.css", "a.js loads https://a.example/d"]


def test_links_and_addresses_of_others_are_no_problem(tmp_path: Path) -> None:
    page = (
        '<a href="https://a.example">a</a><link rel="canonical" href="https://a.example"><h2 id="b"></h2><a href="#b">'
    )
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    assert list(problems(tmp_path)) == []


def test_links_out_of_the_documents_lead_into_the_repository() -> None:
    text = "[a](../README.md#install) [b](../examples) [c](cli.md) [d](../nowhere.md)"
    there, missing = with_repository_links(text, ROOT, ROOT / "docs/index.md", "https://host/p")
    assert there == (
        "[a](https://host/p/blob/main/README.md#install) [b](https://host/p/tree/main/examples) [c](cli.md) "
        "[d](https://host/p/blob/main/nowhere.md)"
    )
    assert missing == ["../nowhere.md"]


def test_each_column_of_a_table_has_a_head() -> None:
    pages = [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
    heads = [
        (page, head)
        for page in pages
        for head in re.findall(r"^(\|.*\|)\n\|[ :|-]*---[ :|-]*\|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(heads) > 50
    assert [(page, head) for page, head in heads if re.search(r"\|\s*\|", head)] == []
