"""The root of the command line: command groups, and the handling of errors."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import rmqfast
from rmqfast.cli import (
    alarms,
    cluster,
    consume,
    dashboard,
    demo,
    doctor,
    exporter,
    group,
    history,
    ingest,
    messages,
    mirror,
    mqadmin,
    produce,
    scan,
    server,
    store,
    topic,
)
from rmqfast.cli.endings import end_on_errors
from rmqfast.cli.shared_options import add_examples, typer_command
from rmqfast.cli.watch import with_seconds


class Root(TyperGroup):
    """Runs a command. Turns an error into one line and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_seconds(args))

    def invoke(self, ctx: Any) -> Any:
        with end_on_errors():
            return super().invoke(ctx)


def show_version(is_asked: bool) -> None:  # noqa: FBT001  (typer calls it so)
    if is_asked:
        print(f"rmqfast {rmqfast.__version__}")
        raise typer.Exit


app: typer.Typer = typer.Typer(
    cls=Root,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(store.app, name="store")
app.add_typer(topic.app, name="topic")
app.add_typer(group.app, name="group")
app.add_typer(messages.app, name="message")
app.add_typer(cluster.app, name="cluster")
app.command("scan")(scan.scan)
app.command("explain")(messages.explain)
app.command("produce")(produce.produce)
app.command("consume")(consume.consume)
app.command("ingest")(ingest.ingest)
app.command("mirror")(mirror.mirror)
app.command("mqadmin", context_settings={"ignore_unknown_options": True})(mqadmin.mqadmin)
app.command("doctor")(doctor.doctor)
app.command("dashboard")(dashboard.dashboard)
app.command("alarms")(alarms.alarms)
app.command("watch")(history.watch)
app.command("exporter")(exporter.exporter)
app.command("demo")(demo.demo)
# The servers also run without Typer, so their options are declared as `Option`.
app.command("server")(typer_command(server.server))
app.command("namesrv")(typer_command(server.namesrv))
app.command("broker")(typer_command(server.broker))


add_examples(app)


@app.callback()
def root(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Apache RocketMQ: inspect stores and clusters, copy stores to Parquet, run a broker.

    Exit codes: 0 success, 1 a problem was found, 2 usage, 3 unreachable or not readable.
    """
