"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rmqfast.cli.completion import complete_group, complete_topic
from rmqfast.cli.options import Option
from rmqfast.cli.output import Form
from rmqfast.cli.typer_commands import path_parser
from rmqfast.errors import ArgumentError


class OnDamage(StrEnum):
    """Action if bytes cannot be read."""

    FAIL = "fail"
    WARN = "warn"


PATH = path_parser(Option(help=""))
Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The store's directory, `storePathRootDir`.", parser=PATH)
]
LogDirectories = Annotated[
    list[Path] | None,
    typer.Option("--commit-log-dir", help="Directory of the commit log, if not the default; repeatable.", parser=PATH),
]
Group = Annotated[str, typer.Argument(metavar="GROUP", help="The consumer group.", autocompletion=complete_group)]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=complete_topic)]
TopicOption = Annotated[
    str | None, typer.Option("--topic", help="Only this topic. Default: all.", autocompletion=complete_topic)
]
TopicsOption = Annotated[
    list[str] | None,
    typer.Option("--topic", help="Only this topic; repeatable. Default: all.", autocompletion=complete_topic),
]
OnDamageOption = Annotated[OnDamage, typer.Option(help="Action on bytes that cannot be read.")]
Output = Annotated[Form, typer.Option("-o", "--output", help="Form of the output.")]
Tags = Annotated[str, typer.Option(help="Tag expression, as 'A || B'.")]
StartTime = Annotated[str | None, typer.Option(help="Stored at or after this: ISO 8601 (UTC) or ms.")]
EndTime = Annotated[str | None, typer.Option(help="Stored before this.")]


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Parses options of the form `name=value`. Raises `ArgumentError` if the name or the `=` is missing."""
    parted = [text.partition("=") for text in texts]
    wrong = [text for text, (name, sign, _) in zip(texts, parted, strict=True) if not sign or not name]
    if wrong:
        raise ArgumentError(f"{option}: expected name=value, got {', '.join(wrong)}")
    return {name: value for name, _, value in parted}
