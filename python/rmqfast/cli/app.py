"""The root of the command line: its nouns, and how an error ends it."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import rmqfast
from rmqfast.cli import (
    cluster,
    consume,
    dead_letters,
    demo,
    group,
    ingest,
    messages,
    mirror,
    offsets,
    produce,
    server,
    store,
    topic,
)
from rmqfast.cli.output import say
from rmqfast.client.instance import ClientErrorCode
from rmqfast.errors import (
    ArgumentError,
    ClientError,
    CorruptError,
    ExpressionError,
    MirrorError,
    MissingExtraError,
    RemotingError,
    ResponseError,
    RmqError,
    StoreBusyError,
    StoreError,
    UnknownColumnError,
    UnknownTopicError,
)

__all__ = ["PROBLEM", "UNREACHABLE", "USAGE", "app"]

PROBLEM, USAGE, UNREACHABLE, INTERRUPTED = 1, 2, 3, 130
CODES: tuple[tuple[type[RmqError], int], ...] = (
    (CorruptError, PROBLEM),
    (StoreError, UNREACHABLE),
    (ResponseError, PROBLEM),
    (RemotingError, UNREACHABLE),
    (MirrorError, PROBLEM),
    (MissingExtraError, UNREACHABLE),
    (ArgumentError, USAGE),
    (ExpressionError, USAGE),
    (UnknownColumnError, USAGE),
    (UnknownTopicError, USAGE),
)
#: Codes of a client's error that mean what a `RemotingError` means.
NOBODY_ANSWERS = frozenset({ClientErrorCode.CONNECT_BROKER_EXCEPTION, ClientErrorCode.ACCESS_BROKER_TIMEOUT})
#: What a command may need beyond what all of them do, and the extra that brings it.
EXTRAS = {"rich": "cli", "pyarrow": "cli", "pyspark": "spark", "py4j": "spark", "pandas": "spark", "numpy": "spark"}
NEXT_STEP: dict[type[RmqError], str] = {
    RemotingError: "another port: --broker-port, --namesrv-port or --port, or listenPort in the file; 0 is any",
    StoreBusyError: "end the process that has it, or take another store: --store, or storePathRootDir in the file",
    UnknownTopicError: "`rmqfast store info DIR` lists the topics",
    ExpressionError: "as in --tags 'paid || shipped', --sql \"amount > 3 AND region IN ('eu')\"",
}


class Root(TyperGroup):
    """Runs a command; what goes wrong in it becomes one line and an exit code, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """As the group does; errors of this package, a closed pipe and Ctrl-C end the command in their own way."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()  # at the end of the interpreter nobody could handle a closed pipe
        except RmqError as error:
            say(f"error: {described(error)}")
            raise typer.Exit(exit_code(error)) from None
        except ImportError as error:
            extra = EXTRAS.get((error.name or "").partition(".")[0])
            if extra is None:
                raise
            say(f"error: {error.name} is needed for this: pip install 'rmqfast[{extra}]'")
            raise typer.Exit(UNREACHABLE) from None
        except BrokenPipeError:
            # whoever read had enough; the interpreter must not flush into the closed pipe when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


def exit_code(error: RmqError) -> int:
    """The exit code that stands for `error`."""
    if isinstance(error, ClientError) and error.response_code in NOBODY_ANSWERS:
        return UNREACHABLE
    return next((code for kind, code in CODES if isinstance(error, kind)), PROBLEM)


def described(error: RmqError) -> str:
    """What went wrong, and what to do next where that is not said already."""
    text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
    text = "; ".join(text.splitlines())
    step = "; ".join(getattr(error, "__notes__", [])) or NEXT_STEP.get(type(error))
    return f"{text} ({step})" if step else text


def show_version(is_asked: bool) -> None:  # noqa: FBT001  (typer calls it so)
    """Prints the version where it was asked for."""
    if is_asked:
        print(f"rmqfast {rmqfast.__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Root,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(store.app, name="store")
app.add_typer(topic.app, name="topic")
group.app.command("reset")(offsets.reset)
group.app.command("skip")(offsets.skip)
group.app.command("clone")(offsets.clone)
group.app.command("dead-letters")(dead_letters.dead_letters)
group.app.command("resend")(dead_letters.resend)
app.add_typer(group.app, name="group")
app.add_typer(messages.app, name="message")
app.add_typer(cluster.app, name="cluster")
app.command("explain")(messages.explain)
app.command("produce")(produce.produce)
app.command("consume")(consume.consume)
app.command("ingest")(ingest.ingest)
app.command("mirror")(mirror.mirror)
app.command("demo")(demo.demo)
app.command("server")(server.server)
app.command("namesrv")(server.namesrv)
app.command("broker")(server.broker)


@app.callback()
def root(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Apache RocketMQ: stores to look into, to check, to take to Parquet; clusters to look into; a broker to run.

    Exit codes: 0 fine, 1 a problem was found, 2 usage, 3 cannot be reached or opened.
    """
