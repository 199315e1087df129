"""Writes the tables of `docs/comparison.md`, from the claims and from what registries said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.marked import with_part

from .claims import Claims, Client, Fact
from .own_release import own_release
from .registries import Release, look_up

_ROOT = Path(__file__).parents[2]
PAGE = _ROOT / "docs/comparison.md"
RECORD = Path(__file__).parent / "registries.json"
NOT_CHECKED = "not checked"
_BEGIN, _END = "<!-- tables: make comparison -->\n\n", "\n<!-- end of tables -->"
_TITLES = {"python": "Python clients", "others": "Clients of other languages", "spark": "Spark connectors"}
_REGISTRY_NAMES = {"here": "PyPI", "pypi": "PyPI", "maven": "Maven Central", "npm": "npm", "go": "the Go proxy"}
#: Rows that registries fill.
_PACKAGE_ROWS: Mapping[str, Callable[[Release], str]] = {
    "newest version": lambda release: release.version,
    "released or built": lambda release: release.date,
    "installs from": lambda release: ", ".join(release.files),
    "needs": lambda release: release.runtime,
    "dependencies": lambda release: "" if release.needs is None else ", ".join(release.needs) or "none",
}
_MANY = 6

#: What registries said: a day, and releases by `Client.key`.
Record = tuple[str, Mapping[str, Release]]


def read_record() -> Record:
    """What registries said when they were asked last."""
    data = json.loads(RECORD.read_text(encoding="utf-8"))
    return data["asked"], {key: Release.of(one) for key, one in data["releases"].items()}


def ask_registries(claims: Claims, today: str) -> None:
    """Asks all registries, and keeps what they say."""
    packages = {client.key: client for client in claims.clients if client.registry and not client.ours}
    releases = {key: look_up(one.registry, one.package).as_json() for key, one in packages.items()}
    RECORD.write_text(json.dumps({"asked": today, "releases": releases}, indent=1) + "\n", encoding="utf-8")


def page_with_tables(page: str, claims: Claims, record: Record) -> str:
    """The page with its tables as claims and registries have them."""
    return with_part(page, _BEGIN, _END, tables(claims, record))


def tables(claims: Claims, record: Record) -> str:
    """All tables, a section each."""
    asked, releases = record
    parts = [f"Registries were asked on {asked}. Sources of the other cells were read on {claims.checked}."]
    for group, title in _TITLES.items():
        parts += [f"## {title}", _table(claims.of_group(group), claims.rows[group], releases)]
    return "\n\n".join(parts) + "\n"


def _table(clients: Sequence[Client], rows: Mapping[str, str], releases: Mapping[str, Release]) -> str:
    lines = [_line(("fact", *(client.name for client in clients))), "| --- " * (len(clients) + 1) + "|"]
    lines.append(_line(("package", *(_package(client) for client in clients))))
    for title, cell in _PACKAGE_ROWS.items():
        lines.append(_line((title, *(_said(client, releases, cell) for client in clients))))
    for row, title in rows.items():
        lines.append(_line((title, *(_cell(client.facts.get(row)) for client in clients))))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _package(client: Client) -> str:
    return f"`{client.package}` of {_REGISTRY_NAMES[client.registry]}" if client.registry else "in no registry"


def _said(client: Client, releases: Mapping[str, Release], cell: Callable[[Release], str]) -> str:
    """What a registry said; a long list is counted."""
    release = own_release() if client.ours else releases.get(client.key, Release())
    said = cell(release)
    names = said.split(", ")
    return f"{len(names)} packages" if len(names) > _MANY else said or NOT_CHECKED


def _cell(fact: Fact | None) -> str:
    if fact is None:
        return NOT_CHECKED
    if fact.source.startswith("https://"):
        return f"[{fact.is_}]({fact.source})"
    return f"{fact.is_} ({fact.source or _in_code(fact.names)})"


def _in_code(names: Sequence[str]) -> str:
    return ", ".join(f"`{short}`" for short in _short(names))


def _short(names: Sequence[str]) -> Iterator[str]:
    """Names as a reader would look for them: with their module where that is not the package itself."""
    for name in names:
        module, _, path = name.partition(":")
        yield path if module == "rmqfast" else f"{module}.{path}"
