"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rmqfast.cli.output import Form

__all__ = ["Directory", "EndTime", "LogDirectories", "Output", "StartTime", "Tags"]

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The store's directory, `storePathRootDir`.")]
LogDirectories = Annotated[
    list[Path] | None,
    typer.Option("--commit-log-dir", help="Directory of the commit log where it is elsewhere; repeatable."),
]
Output = Annotated[Form, typer.Option("-o", "--output", help="Form of the output.")]
Tags = Annotated[str, typer.Option(help="Tag expression, as 'A || B'.")]
StartTime = Annotated[str | None, typer.Option(help="Stored at or after this: ISO 8601 (UTC) or ms.")]
EndTime = Annotated[str | None, typer.Option(help="Stored before this.")]
