"""Hooks that MkDocs calls while it builds the site."""

from __future__ import annotations

import logging
import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority

from website.checks import problems
from website.images import with_dark_images, with_image_sizes
from website.links import with_repository_links

ROOT = Path(__file__).parents[1]
#: `--strict` counts the warnings of this logger.
_log = logging.getLogger("mkdocs.hooks.rmqfast")
_NOT_IN_REFERENCE = {"content.code.copy", "toc.follow"}
#: What Material's script would do something to, one by one: each heading, signature, link and table.
_MOUNTED = re.compile(r' data-md-component="?(?:toc|content)"?(?=[ >])')
#: Marks of code whose colour is that of the text, or nearly: a page has up to thousands, and a browser styles each.
_COLOURLESS = re.compile(r'<span class="?[nopw]"?>([^<]*)</span>')
#: The script wraps tables, so that they scroll by themselves.
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_SCROLLING = r'<div class="md-typeset__scrollwrap"><div class="md-typeset__table">\g<0></div></div>'
_FEATURES: dict[str, list[str]] = {}
_SEARCH = 'data-md-component="search" role="dialog"'
_SEARCH_NAMES = {"en": "Search", "zh": "搜索"}


def on_config(config: Any) -> None:
    """Takes the addresses from the project's metadata."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls = project["urls"]
    config.site_description = project["description"]
    config.site_url = urls["Documentation"]
    config.repo_url = urls["Repository"]
    config.repo_name = urls["Repository"].partition("//")[2].partition("/")[2]
    # other projects' references lead to the pages in English, and not to those of the last build
    config.plugins["mkdocstrings"].config.enable_inventory = not config.plugins["i18n"].building


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Has links that leave `docs/` lead into the repository; the changelog is that of the repository."""
    if page.file.src_uri == "changelog.md":
        # it stands one folder higher than the page
        markdown = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    text, missing = with_repository_links(markdown, ROOT, Path(page.file.abs_src_path), config.repo_url)
    for path in missing:
        _log.warning("%s links to %s, which is not there", page.file.src_uri, path)
    return text


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """Gives images sizes and dark twins, and a page without a translation a title in the language of the site."""
    titles = config.plugins["i18n"].current_language_config.nav_translations or {}
    page.title = titles.get(page.title, page.title)
    return with_image_sizes(with_dark_images(html), Path(config.docs_dir), page.url)


def on_page_context(_context: Any, page: Any, config: Any, **_: Any) -> None:
    """Leaves out of the reference what a script would do to each of its hundreds of signatures and headings."""
    features = _FEATURES.setdefault("all", config.theme["features"])
    is_reference = page.file.src_uri.startswith("reference/")
    config.theme["features"] = [name for name in features if not (is_reference and name in _NOT_IN_REFERENCE)]
    for alternate in config.extra.alternate:  # the plugin leaves absolute addresses on the two home pages
        alternate["link"] = page.file.alternates[alternate["lang"]].url


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Names the search for screen readers; drops what only costs time: colourless marks, scripts on the reference."""
    named = output.replace(_SEARCH, f'{_SEARCH} aria-label="{_SEARCH_NAMES[config.theme["language"]]}"')
    light = _COLOURLESS.sub(r"\1", named)
    if not page.file.src_uri.startswith("reference/"):
        return light
    return _TABLE.sub(_SCROLLING, _MOUNTED.sub("", light))


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """The page for what is not there is one for all languages: the English one, and not that of the last build."""
    i18n = config.plugins["i18n"]
    return output_content if template_name != "404.html" or i18n.is_default_language_build else ""


@event_priority(-200)  # behind that of the plugin, which builds the other languages, each with a call of this one
def on_post_build(config: Any) -> None:
    """Looks through what was built, once all languages are there."""
    if not config.plugins["i18n"].building:
        for problem in problems(Path(config.site_dir)):
            _log.warning(problem)
