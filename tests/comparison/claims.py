"""What `docs/comparison.md` claims of clients and connectors, and where each claim was read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parent / "claims.toml"
#: A code host numbers the lines of a page only in its plain form.
_SHOWN_AS_PAGE = re.compile(r"(\.md)#(?=L\d)")


@dataclass(frozen=True)
class Fact:
    """One cell.

    Attributes:
        is_: What it says.
        source: Where others say so: an address.
        names: What of ours stands behind it, as `module:Name.attribute`.
    """

    is_: str
    source: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Client:
    """A client or a connector.

    Attributes:
        name: As the page has it.
        group: Which table it stands in.
        ours: Whether it is this project.
        registry: Which registry has it; "here" is this tree; empty if none.
        package: Its name there.
        facts: Its cells by row.
    """

    name: str
    group: str
    ours: bool = False
    registry: str = ""
    package: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])

    @property
    def key(self) -> str:
        """Registry and package in one word."""
        return f"{self.registry}:{self.package}" if self.registry else ""


@dataclass(frozen=True)
class Claims:
    """All that the page claims.

    Attributes:
        checked: When the sources were read.
        rows: Titles of the rows, by group.
        clients: The columns.
    """

    checked: date
    rows: Mapping[str, Mapping[str, str]]
    clients: tuple[Client, ...]

    def of_group(self, group: str) -> list[Client]:
        """The columns of one table."""
        return [client for client in self.clients if client.group == group]


def read_claims() -> Claims:
    """The claims of `claims.toml`; a misspelt key is an error."""
    data = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    repositories: dict[str, str] = data["repositories"]
    return Claims(
        checked=data["checked"],
        rows=data["rows"],
        clients=tuple(_client(dict(one), repositories) for one in data["clients"]),
    )


def _client(data: dict[str, Any], repositories: Mapping[str, str]) -> Client:
    base = repositories.get(data.pop("repository", ""), "")
    facts = {row: _fact(dict(fact), base) for row, fact in data.pop("facts").items()}
    return Client(**data, facts=facts)


def _fact(data: dict[str, Any], base: str) -> Fact:
    source: str = data.pop("source", "")
    if source and not source.startswith(("https://", "the wheel of ")):
        if not base:
            raise ValueError(f"{source}: a file of no repository")
        source = base + _SHOWN_AS_PAGE.sub(r"\1?plain=1#", source)
    return Fact(is_=data.pop("is"), source=source, names=tuple(data.pop("names", ())), **data)
