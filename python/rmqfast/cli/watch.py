"""The option `--watch`: repeats a command's output, in place on a terminal."""

from __future__ import annotations

import functools
import inspect
import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Annotated, Any

import typer

from rmqfast.cli.endings import describe, end_on_signals
from rmqfast.cli.output import Form, say
from rmqfast.errors import ArgumentError, RmqError

OPTION = "--watch"
#: Seconds between two outputs: default, minimum and maximum.
SECONDS, SHORTEST, LONGEST = 2.0, 0.1, 86_400.0
HELP = f"Again every so many seconds, {SECONDS:g} unless given, until Ctrl-C."


def watchable(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the option `--watch` to a command, which must have an argument `output` and may raise `typer.Exit`."""
    own = inspect.signature(command, eval_str=True)
    kind = Annotated[float | None, typer.Option(OPTION, metavar="[SECONDS]", help=HELP)]
    watch = inspect.Parameter("watch", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
    parameters = [*own.parameters.values(), watch]

    @functools.wraps(command)
    def run(*, watch: float | None, output: Form, **arguments: Any) -> None:
        answer = functools.partial(command, **arguments, output=output)
        if watch is None:
            answer()
        else:
            _repeat(answer, watch, output)

    # `wraps` copied the signature of the command, which lacks this option.
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def with_seconds(words: Sequence[str]) -> list[str]:
    """Returns the words with a number of seconds after a bare `--watch`, since the parser requires a value.

    Example:
        >>> with_seconds(["--watch", "5", "-o", "json"]), with_seconds(["--watch", "orders"])
        (['--watch=5', '-o', 'json'], ['--watch=2', 'orders'])
    """
    # Words after `--` are arguments, not options.
    end = words.index("--") if "--" in words else len(words)
    result: list[str] = []
    for word in words[:end]:
        if result[-1:] == [OPTION] and _is_number(word):
            result[-1] = f"{OPTION}={word}"
        else:
            result = [*_with_default(result), word]
    return [*_with_default(result), *words[end:]]


def _with_default(words: list[str]) -> list[str]:
    return [*words[:-1], f"{OPTION}={SECONDS:g}"] if words[-1:] == [OPTION] else words


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _repeat(answer: Callable[[], None], seconds: float, form: Form) -> None:
    """Repeats the command until a signal ends it.

    Raises:
        ArgumentError: The seconds are out of range, or the output is CSV, which has one header.
        RmqError: The first run fails. Later failures are shown and retried, since a cluster may be down for a while.
    """
    if not SHORTEST <= seconds <= LONGEST:
        raise ArgumentError(f"{OPTION}: expected {SHORTEST:g} to {LONGEST:g} seconds, got {seconds:g}")
    if form is Form.CSV:
        raise ArgumentError(f"output: expected table, json or jsonl with {OPTION}, got csv, which has one header")
    in_place = form is Form.TABLE and sys.stdout.isatty()
    with end_on_signals(), _screen() if in_place else _stream(form) as show:
        show(answer)
        while True:
            time.sleep(seconds)
            show(functools.partial(_or_error, answer))


Show = Callable[[Callable[[], None]], None]


@contextmanager
def _stream(form: Form) -> Iterator[Show]:
    shown = 0

    def show(answer: Callable[[], None]) -> None:
        nonlocal shown
        # A blank line separates two tables.
        if shown and form is Form.TABLE:
            print()
        shown += 1
        _without_exit(answer)
        sys.stdout.flush()

    yield show


@contextmanager
def _screen() -> Iterator[Show]:
    """Replaces the previous output on the terminal. The last output stays."""
    from rich.live import Live
    from rich.text import Text

    from rmqfast.cli.screen import console

    last = ""
    screen = console(sys.stdout)

    def show(answer: Callable[[], None]) -> None:
        nonlocal last
        last = _capture(answer)
        live.update(Text.from_ansi(last, no_wrap=True, overflow="crop"), refresh=True)

    try:
        with Live(
            console=screen, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        ) as live:
            yield show
    finally:
        # The terminal shows its earlier content again; leave the last output below it.
        sys.stdout.write(last)


class _Page(io.StringIO):
    """A buffer that claims to be a terminal, so that output into it has the terminal's width and colours."""

    def isatty(self) -> bool:
        return True


def _capture(answer: Callable[[], None]) -> str:
    """Returns the output of a command, including its standard error."""
    page = _Page()
    with redirect_stdout(page), redirect_stderr(page):
        _without_exit(answer)
    return page.getvalue()


def _or_error(answer: Callable[[], None]) -> None:
    try:
        answer()
    except RmqError as error:
        say(f"error: {describe(error)}")


def _without_exit(answer: Callable[[], None]) -> None:
    """Runs the command and ignores its exit code, since a problem that it found must not end the repetition."""
    with suppress(typer.Exit):
        answer()
