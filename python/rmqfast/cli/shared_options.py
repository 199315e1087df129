"""Arguments and options that several commands share, and commands made of functions with `Option` annotations."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from rmqfast.cli.completion import complete_group, complete_topic
from rmqfast.cli.examples import example_text
from rmqfast.cli.options import NAME, Option
from rmqfast.cli.output import Form
from rmqfast.errors import ArgumentError, RmqError


def typer_command(command: Callable[..., None]) -> Callable[..., None]:
    """Returns the command with the options of Typer instead of `Option`."""
    # Typer needs annotations as objects, but `from __future__ import annotations` leaves strings.
    own = inspect.signature(command, eval_str=True)
    parameters = [each.replace(annotation=_annotation(each.annotation)) for each in own.parameters.values()]

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        command(**arguments)

    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def add_examples(app: typer.Typer, prefix: str = "") -> None:
    """Adds the examples to the help of each command of `app` and its groups."""
    for command in app.registered_commands:
        name = str(command.name or getattr(command.callback, "__name__", ""))
        command.epilog = "\b\n" + example_text(prefix + name)  # `\b` keeps the line breaks
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_examples(group.typer_instance, f"{prefix}{group.name} ")


def _annotation(annotation: Any) -> Any:
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, *notes = get_args(annotation)
    options = [note for note in notes if isinstance(note, Option)]
    return Annotated[kind, _typer_option(kind, options[0])] if options else annotation


def path_parser(option: Option) -> Callable[[str], Path]:
    """Returns a parser of paths. Typer's own parser takes an empty string for the current directory."""

    def path(text: str) -> Path:
        try:
            return option.path(text)
        except RmqError as error:
            raise typer.BadParameter(str(error).removeprefix(f"{NAME}: ")) from None

    return path


def _typer_option(kind: Any, option: Option) -> Any:
    parser = path_parser(option) if Path in (kind, *get_args(kind)) else None
    return typer.Option(*option.names, help=option.help, min=option.min, max=option.max, parser=parser)


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
SqlOption = Annotated[str | None, typer.Option(help='SQL92 condition over the properties, as "a > 3".')]
StartTime = Annotated[str | None, typer.Option(help="Stored at or after this: ISO 8601 (UTC) or ms.")]
EndTime = Annotated[str | None, typer.Option(help="Stored before this.")]
AsOf = Annotated[str | None, typer.Option(help="As the store or the topics stood at this time.")]
KeysOption = Annotated[list[str] | None, typer.Option(help="Only messages with this key; repeatable.")]
QueueOption = Annotated[list[int] | None, typer.Option(help="Only this queue; repeatable.")]
StartOffset = Annotated[int | None, typer.Option(help="First queue offset.")]
EndOffset = Annotated[int | None, typer.Option(help="Queue offset behind the last one.")]
Columns = Annotated[str | None, typer.Option(help="Columns, as topic,tags,body; a table shows a few.")]


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """Parses options of the form `name=value`. Raises `ArgumentError` if the name or the `=` is missing."""
    parted = [text.partition("=") for text in texts]
    wrong = [text for text, (name, sign, _) in zip(texts, parted, strict=True) if not sign or not name]
    if wrong:
        raise ArgumentError(f"{option}: expected name=value, got {', '.join(wrong)}")
    return {name: value for name, _, value in parted}
