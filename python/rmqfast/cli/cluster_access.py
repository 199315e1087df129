"""How commands reach a cluster, and how rows of values are written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from rmqfast.admin import Admin
from rmqfast.cli.output import Form, write
from rmqfast.errors import ArgumentError

__all__ = ["Cluster", "NameServer", "Yes", "administration", "checked_name_server", "write_values"]

NameServer = Annotated[
    str | None,
    typer.Option("-n", "--name-server", help="host:port, several separated by ';'; else NAMESRV_ADDR says it."),
]
Cluster = Annotated[str | None, typer.Option("-c", "--cluster", help="The cluster; all of them without it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it; without, nothing is changed.")]


@contextmanager
def administration(name_server: str | None) -> Iterator[Admin]:
    """An `Admin` while the block runs.

    Raises:
        ArgumentError: Nobody says where the name server is.
    """
    with Admin(name_server=checked_name_server(name_server)) as admin:
        yield admin


def checked_name_server(name_server: str | None) -> str:
    """Where the name server is.

    Raises:
        ArgumentError: Neither the option nor the environment says it.
    """
    found = name_server or os.environ.get("NAMESRV_ADDR", "")
    if not found:
        raise ArgumentError("expected --name-server host:9876, or NAMESRV_ADDR in the environment")
    return found


def write_values(form: Form, columns: Sequence[str], values: Iterable[object]) -> None:
    """Writes values as rows, an attribute a column."""
    write(form, columns, [[[getattr(value, column) for column in columns] for value in values]])
