"""Looks through the built site: nothing is loaded from other hosts, and each link inside of it leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

#: Links of a page's head that are addresses and load nothing.
_LOADS_NOTHING = {"canonical", "next", "prev", "alternate"}
_OF_STYLE = re.compile(r"""(?:url\(\s*|@import\s+(?:url\(\s*)?)["']?((?:https?:)?//[^"')\s]+)""")
_OF_SCRIPT = re.compile(r"""(?:fetch|import|importScripts|Worker|XMLHttpRequest)\(\s*["'`]((?:https?:)?//[^"'`\s]+)""")
#: What the page loads once it is shown: `website/overrides/main.html`.
_ONCE_SHOWN = re.compile(r'onceShown\("(.*?)"\)')
#: What Material's own script would load, and what a page must have for it: no page has it.
_TRIGGERS = {
    "a diagram": re.compile(r'class="?mermaid\b'),
    "the repository's figures": re.compile(r'data-md-component="?source\b'),
}


class _Page(NamedTuple):
    anchors: set[str]
    links: list[str]
    loads: list[str]


class _Reader(HTMLParser):
    """Collects what a page has, links to and loads."""

    def __init__(self) -> None:
        super().__init__()
        self.page = _Page(set(), [], [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element."""
        values = {name: value or "" for name, value in attrs}
        self.page.anchors.update(values[name] for name in ("id", "name") if name in values)
        if "href" in values and tag == "a":
            self.page.links.append(values["href"])
        elif "href" in values and not set(values.get("rel", "").split()) & _LOADS_NOTHING:
            self.page.loads.append(values["href"])
        self.page.loads.extend(values[name] for name in ("src", "data", "poster") if name in values)
        self.page.loads.extend(part.split()[0] for part in values.get("srcset", "").split(",") if part.strip())
        self.page.loads.extend(_OF_STYLE.findall(values.get("style", "")))


def problems(site: Path) -> Iterator[str]:
    """The problems of a built site, as sentences."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    pages = {path: _page(text) for path, text in texts.items()}
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        yield from (
            f"{name} loads {address}"
            for address in (*page.loads, *_ONCE_SHOWN.findall(texts[path]))
            if _is_foreign(address)
        )
        yield from (f"{name} loads {address}" for address in _OF_STYLE.findall(texts[path]))
        yield from (f"{name} has {what}" for what, trigger in _TRIGGERS.items() if trigger.search(texts[path]))
        if path.name != "404.html":  # its links begin at the root of the site's host
            yield from (f"{name} links to {link}" for link in page.links if not _leads(link, path, pages, site))
    for kind, pattern in (("css", _OF_STYLE), ("js", _OF_SCRIPT)):
        for path in sorted(site.rglob(f"*.{kind}")):
            found = pattern.findall(path.read_text(encoding="utf-8"))
            yield from (f"{path.relative_to(site).as_posix()} loads {address}" for address in found)


def _page(text: str) -> _Page:
    reader = _Reader()
    reader.feed(text)
    return reader.page


def _is_foreign(address: str) -> bool:
    return bool(urlsplit(address).netloc)


def _leads(link: str, path: Path, pages: dict[Path, _Page], site: Path) -> bool:
    """Whether a link leads out of the site, or to something that is there."""
    if urlsplit(link).scheme or urlsplit(link).netloc:
        return True
    found = urlsplit(urljoin(f"/{path.relative_to(site).as_posix()}", link))
    target = site / unquote(found.path).lstrip("/")
    target = target / "index.html" if target.is_dir() else target
    if target not in pages:
        return target.is_file()
    return found.fragment in {"", "__tabbed_1", "top"} or unquote(found.fragment) in pages[target].anchors
