"""Commands that run without the extra `cli`: the servers. argparse parses their options."""

from __future__ import annotations

import argparse
import inspect
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, get_args

from rmqfast import __version__
from rmqfast.cli import server
from rmqfast.cli.endings import end_on_errors
from rmqfast.cli.examples import example_text
from rmqfast.cli.options import Option
from rmqfast.errors import RmqError

# argparse does not wrap raw descriptions. They are wrapped here, for terminals of 80 columns.
WIDTH = 78
#: The same functions as with the extra; only the parser differs.
COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__: command for command in (server.server, server.namesrv, server.broker)
}


def run(words: Sequence[str]) -> None:
    """Runs one of `COMMANDS`. Ends with exit code 2 if the command line cannot be parsed."""
    arguments = vars(_parser().parse_args(words))
    command = COMMANDS[arguments.pop("command")]
    with end_on_errors():
        command(**arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rmqfast",
        allow_abbrev=False,
        description="What runs without the extra `cli`; all other commands need it: pip install 'rmqfast[cli]'",
    )
    parser.add_argument("--version", action="version", version=f"rmqfast {__version__}", help="Print the version.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        paragraphs = _escape(inspect.getdoc(command) or "").split("\n\n")
        own = subparsers.add_parser(
            name,
            allow_abbrev=False,
            help=" ".join(paragraphs[0].split()),
            description="\n\n".join(textwrap.fill(paragraph, WIDTH) for paragraph in paragraphs),
            epilog=_escape(example_text(name)),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            _add(own, parameter)
    return parser


def _add(parser: argparse.ArgumentParser, parameter: inspect.Parameter) -> None:
    # The annotation is `Annotated[type, Option(...)]`.
    kind, option = get_args(parameter.annotation)
    names = option.names or ("--" + parameter.name.replace("_", "-"),)
    shared: dict[str, Any] = {"dest": parameter.name, "default": parameter.default, "help": _escape(option.help)}
    if parameter.default not in {None, "", False}:
        shared["help"] += " (default: %(default)s)"
    if kind is bool:
        parser.add_argument(*names, action="store_true", **shared)
    else:
        parser.add_argument(*names, type=_converter(kind, option), metavar=_single(kind).__name__.upper(), **shared)


def _escape(text: str) -> str:
    return text.replace("%", "%%")  # argparse formats help texts with `%`


def _single(kind: Any) -> type[Any]:
    """Returns the type `int` for `int | None`."""
    kinds: tuple[type[Any], ...] = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    return next(each for each in kinds if each is not type(None))


def _converter(kind: Any, option: Option) -> Callable[[str], Any]:
    single = _single(kind)

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except RmqError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    def parse(text: str) -> Any:
        if single is Path:
            return option.path(text)
        value = single(text)
        if (option.min is not None and value < option.min) or (option.max is not None and value > option.max):
            raise argparse.ArgumentTypeError(f"expected {option.min} to {option.max}, got {text}")
        return value

    convert.__name__ = single.__name__  # argparse prints this name, as in "invalid int value"
    return convert
