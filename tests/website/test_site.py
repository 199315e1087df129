"""The documentation site is built without a warning, loads nothing from elsewhere, and has all public names."""

from __future__ import annotations

import pkgutil
import re
import subprocess
import sys
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
from tests.examples.documents import ROOT

REFERENCE = ROOT / "docs/reference"
#: They have no page: the extension, whose names others give; the command line, which is no library.
WITHOUT_PAGE = {"rmqfast._native", "rmqfast.cli", "rmqfast.__main__"}


def test_the_site_has_no_warning_and_each_public_name(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = [thing for page in REFERENCE.glob("*.md") for thing in shown_by(page, tmp_path)]
    modules = [module for page in REFERENCE.glob("*.md") for module in SHOWN.findall(page.read_text(encoding="utf-8"))]
    public = [(module, name) for module in modules for name in public_names(module)]
    assert len(public) > 200
    assert [
        each for each in public if not any(getattr(import_module(each[0]), each[1]) is thing for thing in shown)
    ] == []


def shown_by(page: Path, site: Path) -> list[object]:
    """What a page of the reference has a section of."""
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


#: They have no names of their own for users: parts of others, and the version.
NOTHING_PUBLIC = {"rmqfast.client.pulling", "rmqfast.cells", "rmqfast.html", "rmqfast.version"}


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
