"""Makes Typer commands from functions whose parameters have `Option` annotations. Adds examples to their help."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer

from rmqfast.cli.examples import example_text
from rmqfast.cli.options import NAME, Option
from rmqfast.errors import RmqError


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
